import { basename } from "node:path/posix";
import { isLanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { joinIdentifier } from "../../../namespace/identifier.ts";
import { rootLocation } from "../catalog/base/location-names.ts";
import type { TableContext } from "../catalog/catalog-context.ts";
import { walkAllTables } from "../catalog/walk.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { readManifestFile } from "../format/files/manifest-file.ts";
import { findVersions } from "../format/versions/version-files.ts";

/** A table in a directory of the base. */
export interface PlacedTable {
  readonly location: string;
  readonly dataset: DatasetRef;
}

/**
 * Returns where a table is; one without a row is in a directory of the root. Undefined for a row of another program whose location leads
 * out of the base, or to the catalog's own files.
 */
export async function placeOf(
  { catalog, layout, store }: TableContext,
  id: Identifier,
): Promise<PlacedTable | undefined> {
  const row = (await catalog.read()).get(joinIdentifier(id));
  const location = row === undefined ? rootLocation(id) : row.location;
  if (location === undefined) return undefined;
  try {
    return { location, dataset: { store, root: store.keyOf(layout.pathOf(location)) } };
  } catch (error) {
    if (isLanceError(error, "InvalidInput")) return undefined;
    throw error;
  }
}

/** Whether a table of the catalog may keep files in a directory, given by its key or name, that is not its own. */
export type IsReferred = (directory: string) => Promise<boolean>;

/**
 * Creates a search for the directories of others to which the tables of a catalog refer, as the library's shallow clones do. A clone needs
 * files that its source may not need any longer. The first call reads all tables.
 *
 * A directory counts by its name alone: a URI, a link and a relative path can be the same directory.
 */
export function createReferredSearch(context: TableContext): IsReferred {
  let names: Promise<ReadonlySet<string>> | undefined;
  return async (directory) => {
    names ??= findNames(context);
    return (await names).has(basename(directory));
  };
}

/** Returns the parts of all paths by which tables name directories of others. */
async function findNames(context: TableContext): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for await (const id of walkAllTables(context)) {
    const place = await placeOf(context, id);
    for (const path of place === undefined ? [] : await basePathsOf(place.dataset))
      for (const part of path.split("/")) for (const name of [part, decoded(part)]) names.add(name);
  }
  return names;
}

/** Returns the other directories that the first and the newest version of a dataset name; those between have no more. */
async function basePathsOf(dataset: DatasetRef): Promise<string[]> {
  const versions = (await orNone(findVersions(dataset))) ?? [];
  versions.sort((a, b) => (a.version < b.version ? -1 : 1));
  const paths: string[] = [];
  for (const { key } of new Set([versions[0], versions.at(-1)].filter((version) => version !== undefined))) {
    const file = await orNone(readManifestFile(dataset.store, key));
    paths.push(...(file?.manifest.basePaths ?? []).map(({ path }) => path));
  }
  return paths;
}

/** Takes files that cannot be read for none: nobody reads a table by them. */
async function orNone<T>(found: Promise<T>): Promise<T | undefined> {
  return found.catch((error: unknown) => {
    if (isLanceError(error, "DataLoss")) return undefined;
    throw error;
  });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
