import { availableParallelism } from "node:os";
import type { UpkeepOptions } from "../../backends/dir/upkeep/upkeep.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { UpkeepMetrics } from "../../namespace/figures.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";
import { hasOwnCredentials } from "../access/upstream-identity.ts";

/** Reads how the tables of a directory are looked after. */
export function upkeepOptionsOf(
  options: ServeOptions,
  shared: SharedDatabase | undefined,
  metrics: UpkeepMetrics | undefined,
): UpkeepOptions {
  return {
    policy: {
      enabled: options.tableUpkeep !== "off",
      fragments: options.upkeepFragments,
      unindexedRows: options.upkeepUnindexedRows,
      deletedPercent: options.upkeepDeletedPercent,
      retentionMs: options.tableRetentionMs,
      history: options.tableHistory,
      maxVersions: options.tableMaxVersions,
    },
    concurrency: options.upkeepConcurrency ?? (shared && Math.ceil(availableParallelism() / shared.workers)),
    sweeps: shared?.isFirst,
    metrics,
  };
}

/**
 * Checks whether the tables of an upstream whose rows are served here are to be looked after, which takes credentials that are not a caller's.
 *
 * @throws UsageError without such credentials
 */
export function wantsForeignUpkeep(options: ServeOptions): boolean {
  if (options.tableUpkeep !== "on") return false;
  if (hasOwnCredentials(options)) return true;
  throw new UsageError(
    `--table-upkeep on requires credentials of the gateway itself at the catalog, such as --upstream-identity client-credentials or service: with --upstream-identity ${options.upstreamIdentity}, the catalog knows the gateway by its callers alone`,
  );
}
