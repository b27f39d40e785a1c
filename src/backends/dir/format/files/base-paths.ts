import type { BasePath, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";

/**
 * Checks that a staged manifest names no directories outside of its table, except for those that the version before
 * names. The engine reads the files in them with the rights of the gateway, and a client that may write to one table
 * could read any other one.
 *
 * @param readPrevious reads the version that the staged one follows; undefined if it has been deleted
 * @throws LanceError PermissionDenied
 */
export async function checkBasePaths(
  dataset: DatasetRef,
  manifest: Manifest,
  readPrevious: () => Promise<Manifest | undefined>,
): Promise<void> {
  const foreign = foreignBasePaths(dataset, manifest);
  if (foreign.length === 0) return;
  const known = new Set((await readPrevious())?.basePaths.map(({ path }) => path));
  const added = foreign.find((path) => !known.has(path));
  if (added === undefined) return;
  throw new LanceError(
    "PermissionDenied",
    `the staged manifest names ${JSON.stringify(added)}, which is outside of the table`,
  );
}

/** Returns the directories outside of its table that a manifest names. */
export function foreignBasePaths(dataset: DatasetRef, { basePaths }: Manifest): string[] {
  return basePaths.map(({ path }) => path).filter((path) => !isOwn(dataset, path));
}

/** Returns the key of a directory that a manifest names; undefined if it is in another storage. */
export function keyOfBase({ store }: DatasetRef, { path }: BasePath): string | undefined {
  const place = withoutEndSlashes(path.replace(/^file:\/\/(?=\/)/, ""));
  return place.startsWith(store.uriOf("")) ? store.keyOf(place) : undefined;
}

/**
 * The rest of a path inside of a table, as far as no reader of URIs can understand it differently: the engine's also takes
 * `%2e%2e` and `..\\` for the directory above, and ignores tabs and line breaks within a name.
 */
const PLAIN_REST = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\\%?#\p{Cc} ]+)*$/u;

/** Whether a path is the directory of a table or inside of it. Branches name the table to which they belong. */
function isOwn({ store, root }: DatasetRef, path: string): boolean {
  const plain = withoutEndSlashes(path.replace(/^file:\/\/(?=\/)/, ""));
  // As a URI, as the engine decodes that, and as the path in the storage.
  const forms = [store.uriOf(root), store.uriOf("x").slice(0, -1) + root, root];
  return forms.some((own) => plain.startsWith(own) && PLAIN_REST.test(plain.slice(own.length)));
}

/** Returns a path without the slashes at its end. It looks at slashes within the path once, however many are in a row. */
export function withoutEndSlashes(path: string): string {
  return path.replace(/(?<!\/)\/+$/, "");
}
