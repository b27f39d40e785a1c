import type { ComposedBackendOptions } from "../../backends/composed/index.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { storageOptionsOf } from "../../config/options/storage.ts";
import type { UpkeepMetrics } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";
import { upkeepOptionsOf, wantsForeignUpkeep } from "./upkeep-options.ts";

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
      upkeep: looksAfterTables && isLookedAfter ? upkeepOptionsOf(options, shared, upkeepMetrics) : undefined,
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
