import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { createFacts, objectIn, textIn } from "../base/answers.ts";
import { createCatalogBackend } from "../base/backend.ts";
import type { CatalogBackendOptions } from "../base/catalog.ts";
import { createJsonClient, type JsonClient, type JsonClientOptions } from "../base/json-client.ts";
import { createIcebergCatalog, type IcebergDialect } from "./catalog.ts";

/** Options of {@link createPolarisBackend} and {@link createLakekeeperBackend}. */
export interface IcebergBackendOptions extends JsonClientOptions, CatalogBackendOptions {
  /** Catalog of Polaris, or warehouse of Lakekeeper, by its name. */
  readonly warehouse: string;
}

/** How long the path of a warehouse is remembered, in milliseconds. */
const PREFIX_MS = 300_000;

/**
 * Creates the backend for a catalog of Apache Polaris: its generic tables of the format `lance` are tables. It connects with the first call.
 *
 * @param options with the address of the server, as of `http://localhost:8181`
 * @throws Error with a single line for unusable options
 */
export async function createPolarisBackend(options: IcebergBackendOptions): Promise<Backend> {
  const uri = [options.uri].flat().map((each) => each.replace(/\/api\/catalog\/?$/, ""));
  const client = await createJsonClient({ ...options, uri });
  const prefix = encodeURIComponent(options.warehouse);
  const catalog = createIcebergCatalog(client, polaris(prefix, options.warehouse));
  return createCatalogBackend(catalog, { ...options, place: placeOf(uri, options) });
}

function polaris(prefix: string, warehouse: string): IcebergDialect {
  return {
    name: "polaris",
    namespaces: async () => `/api/catalog/v1/${prefix}`,
    tables: async () => `/api/catalog/polaris/v1/${prefix}`,
    delegation: { "polaris-generic-table-access-delegation": "vended-credentials" },
    credentials: "storage-access-configs",
    foldsNames: false,
    readiness: `/api/catalog/v1/config?${new URLSearchParams({ warehouse })}`,
  };
}

/**
 * Creates the backend for a warehouse of Lakekeeper: its generic tables of the format `lance` are tables. It connects with the first call.
 *
 * @param options with the address of the server, as of `http://localhost:8181`
 * @throws Error with a single line for unusable options
 */
export async function createLakekeeperBackend(options: IcebergBackendOptions): Promise<Backend> {
  const uri = [options.uri].flat().map((each) => each.replace(/\/catalog\/?$/, ""));
  const client = await createJsonClient({ ...options, uri });
  const catalog = createIcebergCatalog(client, lakekeeper(client, options.warehouse));
  return createCatalogBackend(catalog, { ...options, place: placeOf(uri, options) });
}

/** Returns where a catalog is: the addresses of the server, the warehouse, and the namespace that is the root here. */
function placeOf(uris: readonly string[], { warehouse, within = [] }: IcebergBackendOptions): string {
  return `${uris.join(", ")} ${[warehouse, ...within].join("$")}`;
}

function lakekeeper(client: JsonClient, warehouse: string): IcebergDialect {
  const prefixOf = createPrefixLookup(client, warehouse);
  return {
    name: "lakekeeper",
    namespaces: async (call) => `/catalog/v1/${await prefixOf(call)}`,
    tables: async (call) => `/lakekeeper/v1/${await prefixOf(call)}`,
    delegation: { "x-iceberg-access-delegation": "vended-credentials" },
    credentials: "storage-credentials",
    purges: "purgeRequested",
    foldsNames: true,
    rename: "/generic-tables/rename",
    readiness: `/catalog/v1/config?${new URLSearchParams({ warehouse })}`,
  };
}

const configFacts = createFacts([])("namespace");

/** Creates the function that finds the part of paths that names a warehouse; Lakekeeper tells it by the name. */
function createPrefixLookup(client: JsonClient, warehouse: string): (call: Call) => Promise<string> {
  let known: { readonly prefix: string; readonly until: number } | undefined;
  return async (call) => {
    if (known !== undefined && Date.now() < known.until) return known.prefix;
    const request = { method: "GET", path: "/catalog/v1/config", query: { warehouse } } as const;
    const answer = await client.send({ ...request, facts: configFacts }, call);
    const prefix =
      textIn(objectIn(answer, "overrides") ?? {}, "prefix") ??
      textIn(objectIn(answer, "defaults") ?? {}, "prefix");
    if (prefix === undefined || !/^[\w.-]+$/.test(prefix) || /^\.+$/.test(prefix))
      throw new LanceError(
        "ServiceUnavailable",
        "the upstream catalog does not tell the path of its warehouse",
        {
          fault: "broken",
        },
      );
    known = { prefix, until: Date.now() + PREFIX_MS };
    return prefix;
  };
}
