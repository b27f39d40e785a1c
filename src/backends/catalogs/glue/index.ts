import type { Backend } from "../../../namespace/lance-namespace.ts";
import { createCatalogBackend } from "../base/backend.ts";
import type { CatalogBackendOptions } from "../base/catalog.ts";
import { createGlueCatalog } from "./catalog.ts";
import { type GlueClientOptions, openGlue } from "./client.ts";

/** Options of {@link createGlueBackend}. */
export interface GlueBackendOptions extends GlueClientOptions, CatalogBackendOptions {
  /** Id of the catalog. Default: that of the account. */
  readonly catalogId?: string | undefined;
}

/**
 * Creates the backend for the AWS Glue Data Catalog: databases are namespaces, and entries with the parameter
 * `table_type=LANCE` are tables. It makes no request before the first call.
 *
 * @throws Error with a single line for a missing package or a missing region
 */
export async function createGlueBackend(options: GlueBackendOptions): Promise<Backend> {
  const { catalogId } = options;
  const glue = await openGlue(options);
  const place = catalogId === undefined ? glue.host : `${glue.host} ${catalogId}`;
  return createCatalogBackend(createGlueCatalog(glue, catalogId), { ...options, place });
}
