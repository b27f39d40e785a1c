import type { ComposedBackendOptions } from "../../backends/composed/index.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { storageOptionsOf } from "../../config/options/storage.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";

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
    looksAfterTables = false,
  }: Pick<ComposedBackendOptions, "log" | "readAhead" | "engineTurns"> & {
    readonly shared?: SharedDatabase | undefined;
    readonly looksAfterTables?: boolean;
  },
): Promise<Backend> {
  if (options.rows !== "here") return upstream;
  if (looksAfterTables && (shared?.isFirst ?? true))
    log.info(
      "the tables of another catalog are not looked after in the background: the gateway has no rights to them between calls; `lance-gateway optimize --rows here` does the work (docs/rows-here.md)",
    );
  const { createComposedBackend } = await import("../../backends/composed/index.ts");
  const { backend, uris, addresses, warehouse = "" } = options;
  try {
    return createComposedBackend(upstream, {
      ...options,
      ...{ log, readAhead, engineTurns },
      storageOptionsOf: (root) => storageOptionsOf(root, options.storageOptions, process.env),
      environment: process.env,
      tableIdleMs: options.idleSeconds * 1000,
      shared: shared && `rows of ${[backend, warehouse, ...uris, ...addresses].join(" ")}`,
      workers: shared?.workers,
    });
  } catch (error) {
    await upstream.close();
    throw error;
  }
}
