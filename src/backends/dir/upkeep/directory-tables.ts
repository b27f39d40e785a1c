import { resolveAbandoned } from "../batch/resolve.ts";
import type { CatalogContext } from "../catalog/catalog-context.ts";
import { walkAllTables } from "../catalog/walk.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import { compactOnCluster, compactsOnCluster, isCompacting } from "../operations/jobs/cluster-compaction.ts";
import { findTable } from "../operations/tables/find-table.ts";
import { REMOTE_UPKEEP_TIMES } from "./activity.ts";
import { createUpkeepLeases, isHashed, LOCATION_FILE, UPKEEP_DIRECTORY, type UpkeepLeases } from "./lease.ts";
import type { UpkeepContext } from "./optimize.ts";
import type { UpkeepTables } from "./upkeep-tables.ts";

/**
 * Creates the tables of a directory, as upkeep looks after them.
 *
 * @param leases Default: those in the base of the directory
 */
export function createDirectoryTables(context: UpkeepContext, leases = leasesOf(context)): UpkeepTables {
  const { catalog, store, readAhead } = context;
  return {
    readAhead,
    times: store.files === undefined ? REMOTE_UPKEEP_TIMES : {},
    walk: () => walkAllTables(context),
    async withTable(id, work) {
      const table = await findTable(context, await catalog.read(), id);
      if (table === undefined) return undefined;
      const { location } = table;
      return work({
        ...{ context, table, leases },
        cluster: {
          takes: (rows) => compactsOnCluster(context, table, rows),
          isJoining: () => isCompacting(context, location),
          join: () => compactOnCluster(context, { id, location }),
        },
      });
    },
    finishAbandoned: () => resolveAbandoned(context),
    async removeRemains() {
      for await (const lease of findGoneLeases(context)) await store.deleteDirectory(lease);
    },
  };
}

function leasesOf({ layout, store, clock }: UpkeepContext): UpkeepLeases {
  return createUpkeepLeases(layout.baseKey, store, clock);
}

/**
 * Finds the leases of tables that are gone, and yields the keys of their directories.
 *
 * They may be deleted at any time: a process that works on a table whose lease is gone does not prune it, and a table
 * that is made in the same place begins with the first token again.
 */
export async function* findGoneLeases({
  catalog,
  layout,
  store,
}: CatalogContext & { readonly store: ObjectStore }): AsyncGenerator<string> {
  const directory = keyIn(layout.baseKey, UPKEEP_DIRECTORY);
  const noted = async (lease: string) => {
    const bytes = await store.get(keyIn(lease, LOCATION_FILE));
    return bytes && Buffer.from(bytes).toString();
  };
  for (const name of await listNames(store, directory)) {
    const location = isHashed(name) ? await noted(keyIn(directory, name)) : locationOf(name);
    if (location === undefined) {
      // An owner that gave its lease back after the deletion has made the directory again, without the location.
      if (isHashed(name)) yield keyIn(directory, name);
      continue;
    }
    if (await isGone({ catalog, layout }, location)) yield keyIn(directory, name);
  }
}

/** Whether there is neither a table in a location nor anything left of one. A table that is being made has its row or its directory before anything works on it. */
export async function isGone(
  { catalog, layout }: Pick<CatalogContext, "catalog" | "layout">,
  location: string,
): Promise<boolean> {
  return !(await layout.exists(location)) && (await catalog.read()).ownerOf(location) === undefined;
}

/** Returns the location of the table whose lease has a name; undefined for a name that no gateway gives. */
function locationOf(name: string): string | undefined {
  try {
    const location = decodeURIComponent(name);
    return encodeURIComponent(location) === name ? location : undefined;
  } catch {
    return undefined;
  }
}
