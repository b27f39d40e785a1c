import { resolveAbandoned } from "../batch/resolve.ts";
import { walkAllTables } from "../catalog/walk.ts";
import { compactOnCluster, compactsOnCluster, isCompacting } from "../operations/jobs/cluster-compaction.ts";
import { findTable } from "../operations/tables/find-table.ts";
import { REMOTE_UPKEEP_TIMES } from "./activity.ts";
import { findGoneLeases } from "./gone-leases.ts";
import { createUpkeepLeases, type UpkeepLeases } from "./lease.ts";
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
