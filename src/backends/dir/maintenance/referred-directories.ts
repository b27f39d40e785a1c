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

/** Returns the location of a table; that of one without a row is a directory of the root. Undefined for a table that is gone. */
export async function locationOf({ catalog }: TableContext, id: Identifier): Promise<string | undefined> {
  const row = (await catalog.read()).get(joinIdentifier(id));
  return row === undefined ? rootLocation(id) : row.location;
}

/**
 * Finds the directories of other tables to which the tables of a catalog refer, as the library's shallow clones do. A clone needs files that
 * its source may not need any longer.
 *
 * @returns whether a directory may be one of them, by its name alone: a URI, a link and a relative path can be the same directory
 */
export async function findReferred(context: TableContext): Promise<(directory: string) => boolean> {
  const { layout, store } = context;
  const names = new Set<string>();
  for await (const id of walkAllTables(context)) {
    const location = await locationOf(context, id);
    if (location === undefined) continue;
    for (const path of await basePathsOf({ store, root: store.keyOf(layout.pathOf(location)) }))
      for (const part of path.split("/")) for (const name of [part, decoded(part)]) names.add(name);
  }
  return (directory) => names.has(basename(directory));
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
