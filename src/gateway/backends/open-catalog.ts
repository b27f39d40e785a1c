import type { Logger } from "pino";
import type { CatalogBackendOptions } from "../../backends/catalogs/base/catalog.ts";
import type { JsonClientOptions } from "../../backends/catalogs/base/json-client.ts";
import type { ResiliencePolicy } from "../../backends/resilience/resilience.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { NoteDecision } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";

/** Resources and limits that the gateway gives a foreign catalog. */
export interface CatalogSurroundings {
  readonly log: Logger;
  readonly noteDecision?: NoteDecision | undefined;
  readonly maxCalls?: number | undefined;
  readonly maxWaiting?: number | undefined;
  readonly resilience: ResiliencePolicy;
}

/**
 * Opens the Glue catalog that the options describe.
 *
 * @throws Error with a single line, if it cannot be opened; UsageError for contradicting options
 */
export async function openGlueCatalog(
  options: ServeOptions,
  { log, noteDecision, resilience, maxCalls, maxWaiting }: CatalogSurroundings,
): Promise<Backend> {
  const [endpoint, second] = options.uris;
  if (second !== undefined) throw new UsageError("--backend glue has a single --uri");
  const { createGlueBackend } = await import("../../backends/catalogs/glue/index.ts");
  const { upstreamConnectMs: connectMs, upstreamFirstByteMs: firstByteMs } = options;
  return createGlueBackend({
    ...catalogOptions(options),
    endpoint,
    region: options.glueRegion ?? process.env["AWS_REGION"] ?? process.env["AWS_DEFAULT_REGION"],
    catalogId: options.warehouse,
    timeLimits: { connectMs, firstByteMs },
    resilience: { ...resilience, log, noteDecision, totalMs: options.upstreamTimeoutMs },
    ...{ maxCalls, maxWaiting },
  });
}

/**
 * Opens a foreign catalog that the gateway calls by its own HTTP client.
 *
 * @throws Error with a single line, if it cannot be opened; UsageError for a missing option
 */
export async function openHttpCatalog(
  kind: "polaris" | "lakekeeper" | "unity",
  options: ServeOptions,
  connection: JsonClientOptions & Pick<CatalogBackendOptions, "handsOut">,
): Promise<Backend> {
  const { warehouse } = options;
  const own = { ...catalogOptions(options), ...connection };
  if (kind === "unity") {
    const { createUnityBackend } = await import("../../backends/catalogs/unity/index.ts");
    const within = [...(warehouse === undefined ? [] : [warehouse]), ...(own.within ?? [])];
    return createUnityBackend({ ...own, within });
  }
  if (warehouse === undefined) throw new UsageError(`--backend ${kind} requires --warehouse`);
  const { createLakekeeperBackend, createPolarisBackend } = await import(
    "../../backends/catalogs/iceberg/index.ts"
  );
  return (kind === "polaris" ? createPolarisBackend : createLakekeeperBackend)({ ...own, warehouse });
}

function catalogOptions(options: ServeOptions): CatalogBackendOptions {
  return {
    within: options.warehouseNamespace,
    tableRoot: options.tableRoot,
    storageOptions: Object.fromEntries(options.clientStorageOptions),
  };
}
