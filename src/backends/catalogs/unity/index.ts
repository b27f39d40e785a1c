import type { Backend } from "../../../namespace/lance-namespace.ts";
import { createCatalogBackend } from "../base/backend.ts";
import type { CatalogBackendOptions } from "../base/catalog.ts";
import { createJsonClient, type JsonClientOptions } from "../base/json-client.ts";
import { createUnityCatalog } from "./catalog.ts";

/** Options of {@link createUnityBackend}. */
export interface UnityBackendOptions extends JsonClientOptions, CatalogBackendOptions {}

const BASE = "/api/2.1/unity-catalog";

/**
 * Creates the backend for a server of Unity Catalog: catalogs and schemas are namespaces, and external tables with the property
 * `table_type=lance` are tables. It connects with the first call.
 *
 * @param options with the address of the server, as of `http://localhost:8080`
 * @throws Error with a single line for unusable options
 */
export async function createUnityBackend(options: UnityBackendOptions): Promise<Backend> {
  const uri = [options.uri].flat().map((each) => each.replace(/\/api\/2\.1(?:\/unity-catalog)?\/?$/, ""));
  const client = await createJsonClient({ ...options, uri });
  const place = [uri.join(", "), (options.within ?? []).join("$")].filter(Boolean).join(" ");
  return createCatalogBackend(createUnityCatalog(client, BASE), { ...options, place });
}
