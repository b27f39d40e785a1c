import { LanceError } from "../../../../namespace/errors.ts";
import { whyNoSource } from "../../../../namespace/root.ts";

/**
 * Returns the location that contains the files of a source, of those that the operator allows.
 *
 * @param source an absolute path or the URI of a place in an S3 bucket, with `*` for any characters
 * @throws LanceError PermissionDenied if there is none, InvalidInput for a source that has other names
 */
export function allowedLocation(locations: readonly string[], source: string): string {
  const why = whyNoSource(source);
  if (why !== undefined) throw new LanceError("InvalidInput", `${source} cannot be imported: ${why}`);
  const containing = locations.filter((location) => `${source}/`.startsWith(`${location}/`));
  const [longest] = containing.toSorted((a, b) => b.length - a.length);
  if (longest !== undefined) return longest;
  const text = `${source} is outside of the locations from which --import-location allows imports`;
  throw new LanceError("PermissionDenied", text);
}
