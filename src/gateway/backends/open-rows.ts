import { availableParallelism } from "node:os";
import type { ComposedBackendOptions } from "../../backends/composed/index.ts";
import type { UpkeepOptions } from "../../backends/dir/upkeep/upkeep.ts";
import { UsageError } from "../../config/option-spec.ts";
import { storageOptionsOf } from "../../config/options/catalog.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { UpkeepMetrics } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";
import { hasOwnCredentials } from "../access/upstream-identity.ts";

/**
 * Returns a backend that serves the rows of an upstream's tables here, if the options say so; otherwise the upstream itself.
 *
 * @throws Error with a single line, if an option is wrong or the engine is not installed.
 */
export async function withRows(
  upstream: Backend,
  options: ServeOptions,
  {
    log,
    readAhead,
    engineTurns,
    shared,
    upkeepMetrics,
    looksAfterTables = false,
  }: Pick<ComposedBackendOptions, "log" | "readAhead" | "engineTurns"> & {
    readonly shared?: SharedDatabase | undefined;
    readonly upkeepMetrics?: UpkeepMetrics | undefined;
    readonly looksAfterTables?: boolean;
  },
): Promise<Backend> {
  const tells = looksAfterTables && (shared?.isFirst ?? true);
  if (options.rows !== "here") {
    if (tells && options.tableUpkeep === "on")
      log.info(
        "--table-upkeep has no effect without --rows here: the upstream looks after its tables itself",
      );
    return upstream;
  }
  try {
    const isLookedAfter = wantsForeignUpkeep(options);
    if (tells && !isLookedAfter)
      log.info(
        "the tables of another catalog are not looked after in the background without --table-upkeep on; `lance-gateway optimize --rows here` does the work (docs/rows-here.md)",
      );
    const { createComposedBackend } = await import("../../backends/composed/index.ts");
    const { backend, uris, addresses, warehouse = "" } = options;
    return createComposedBackend(upstream, {
      ...options,
      ...{ log, readAhead, engineTurns },
      storageOptionsOf: (root) => storageOptionsOf(root, options.storageOptions, process.env),
      environment: process.env,
      upkeep:
        looksAfterTables && isLookedAfter && !options.readOnly
          ? upkeepOptionsOf(options, shared, upkeepMetrics)
          : undefined,
      tableIdleMs: options.idleSeconds * 1000,
      shared: shared && `rows of ${[backend, warehouse, ...uris, ...addresses].join(" ")}`,
      workers: shared?.workers,
      tableUseMs: shared?.tableUseMs,
    });
  } catch (error) {
    await upstream.close();
    throw error;
  }
}

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
function wantsForeignUpkeep(options: ServeOptions): boolean {
  if (options.tableUpkeep !== "on") return false;
  if (hasOwnCredentials(options)) return true;
  throw new UsageError(
    `--table-upkeep on requires credentials of the gateway itself at the catalog, such as --upstream-identity client-credentials or service: with --upstream-identity ${options.upstreamIdentity}, the catalog knows the gateway by its callers alone`,
  );
}
