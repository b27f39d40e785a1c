import { LanceError } from "../../../../namespace/errors.ts";
import { DEFAULT_DELIMITER, isNewName } from "../../../../namespace/identifier.ts";
import { MANIFEST_NAME } from "../manifest/manifest-table.ts";

/** Forms of refused locations, with their rules in the words of Lance's own directory catalog. The first match counts. */
const RULES: readonly (readonly [broken: RegExp, rule: string])[] = [
  [/^(?:[\\/]|[A-Za-z]:[\\/])/, "Absolute paths are not allowed"],
  [/^[A-Za-z][A-Za-z0-9+.-]*:\//, "Absolute URIs are not allowed"],
  [/(?:^|[\\/])\.\.(?:[\\/]|$)/, "Path traversal is not allowed"],
  [/^(?:\.\/)*__manifest(?:\/|$)/, "The manifest of the catalog is not allowed"],
  [/(?:^|\/)\./, "Names that begin with a dot are not allowed"],
  [/(?:^|\/)(?:\/|$)/, "Empty names are not allowed"],
];

/** The beginning of a URI. */
const URI = /^[a-z][a-z0-9+.-]*:\//i;

/**
 * Checks a location that a client requests for a table.
 *
 * @throws LanceError InvalidInput, unless it is a plain relative path that stays below the base.
 */
export function checkNewLocation(location: string): void {
  const parts = location.split("/");
  // The location of a table in a namespace has the delimiter of its identifier.
  const plain = parts.every((part) => isNewName(part.replaceAll(DEFAULT_DELIMITER, "_")));
  if (
    plain &&
    !URI.test(location) &&
    parts[0] !== MANIFEST_NAME &&
    !parts.some((part) => part.startsWith("."))
  )
    return;
  throw refusedLocation(location);
}

/** Creates the error for a refused location; it says which rule the location breaks. */
export function refusedLocation(location: string): LanceError {
  const texts = [location, decoded(location)];
  const [, rule = "Names that a table must not have are not allowed"] =
    RULES.find(([broken]) => texts.some((text) => broken.test(text))) ?? [];
  const must = "Location must be a relative path within the root directory";
  return new LanceError("InvalidInput", `${rule}. ${must}: ${JSON.stringify(location)}`);
}

/** Returns the location as a reader sees it that decodes percent-encoding. */
export function decoded(location: string): string {
  try {
    return decodeURIComponent(location);
  } catch {
    return location;
  }
}

/** Another caller has taken the location that was chosen for a new table. */
export class LocationTaken extends LanceError {
  constructor() {
    super("ConcurrentModification", "the location of a table was taken meanwhile; try again");
  }
}
