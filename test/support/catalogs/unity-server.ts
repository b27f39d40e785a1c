import {
  type CatalogAnswer,
  type CatalogRequest,
  type CatalogServer,
  pageOf,
  startCatalogServer,
} from "./catalog-server.ts";

/** A simulation of Unity Catalog. */
export interface UnityServer extends CatalogServer {
  /** Name of the only catalog. */
  readonly catalog: string;
  /** Temporary credentials of tables. Default: it refuses to give any. */
  credentials: object | undefined;
  /** Adds an entry that is not a Lance table. */
  addTable(schema: readonly string[], name: string): void;
}

const BASE = "/api/2.1/unity-catalog/";
const failure = (status: number, error_code: string): CatalogAnswer => ({
  status,
  body: { error_code, message: error_code.toLowerCase(), details: [{ reason: error_code }] },
});

type Entry = Record<string, unknown>;

/** Starts a simulation made from the public document of Unity Catalog's API, with its paths, shapes, paging and error codes. */
export async function startUnityServer(): Promise<UnityServer> {
  const catalogs = new Map<string, Entry>([["main", { name: "main", properties: {} }]]);
  const schemas = new Map<string, Entry>();
  const tables = new Map<string, Entry>();

  function answer(request: CatalogRequest): CatalogAnswer {
    const [kind = "", key] = request.path.slice(BASE.length).split("/").map(decodeURIComponent);
    if (!request.path.startsWith(BASE)) return { status: 404 };
    if (kind === "catalogs") return read(catalogs, "catalogs", key, "CATALOG_NOT_FOUND", request);
    if (kind === "schemas") return ofSchemas(key, request);
    if (kind === "tables") return ofTables(key, request);
    if (kind === "temporary-table-credentials")
      return server.credentials === undefined
        ? failure(400, "INVALID_ARGUMENT")
        : { status: 200, body: server.credentials };
    return { status: 404 };
  }

  function read(
    all: Map<string, Entry>,
    field: string,
    key: string | undefined,
    missing: string,
    { query }: CatalogRequest,
  ): CatalogAnswer {
    if (key !== undefined) {
      const found = all.get(key);
      return found === undefined ? failure(404, missing) : { status: 200, body: found };
    }
    const wanted = ["catalog_name", "schema_name"].filter((name) => query.has(name));
    const found = [...all.values()].filter((each) => wanted.every((name) => each[name] === query.get(name)));
    const { page, next } = pageOf(found, query.get("page_token"), query.get("max_results"));
    return { status: 200, body: { [field]: page, next_page_token: next ?? null } };
  }

  function ofSchemas(key: string | undefined, request: CatalogRequest): CatalogAnswer {
    const { method, body, query } = request;
    if (method === "POST") {
      const id = `${body["catalog_name"]}.${body["name"]}`;
      if (!catalogs.has(String(body["catalog_name"]))) return failure(404, "CATALOG_NOT_FOUND");
      if (schemas.has(id)) return failure(400, "SCHEMA_ALREADY_EXISTS");
      schemas.set(id, { ...body, full_name: id });
      return { status: 200, body: schemas.get(id) as object };
    }
    if (method === "DELETE") {
      if (!schemas.has(key ?? "")) return failure(404, "SCHEMA_NOT_FOUND");
      if ([...tables.keys()].some((each) => each.startsWith(`${key}.`)))
        return failure(400, "FAILED_PRECONDITION");
      schemas.delete(key ?? "");
      return { status: 200, body: "200 OK" };
    }
    if (key === undefined && !catalogs.has(query.get("catalog_name") ?? ""))
      return failure(404, "CATALOG_NOT_FOUND");
    return read(schemas, "schemas", key, "SCHEMA_NOT_FOUND", request);
  }

  function ofTables(key: string | undefined, request: CatalogRequest): CatalogAnswer {
    const { method, body, query } = request;
    if (method === "POST") {
      const schema = `${body["catalog_name"]}.${body["schema_name"]}`;
      if (!schemas.has(schema)) return failure(404, "SCHEMA_NOT_FOUND");
      const id = `${schema}.${body["name"]}`;
      if (tables.has(id)) return failure(400, "TABLE_ALREADY_EXISTS");
      tables.set(id, { ...body, table_id: `id-of-${id}` });
      return { status: 200, body: tables.get(id) as object };
    }
    if (method === "DELETE") {
      if (!tables.delete(key ?? "")) return failure(404, "TABLE_NOT_FOUND");
      return { status: 200, body: "200 OK" };
    }
    if (key === undefined && !schemas.has(`${query.get("catalog_name")}.${query.get("schema_name")}`))
      return failure(404, "SCHEMA_NOT_FOUND");
    return read(tables, "tables", key, "TABLE_NOT_FOUND", request);
  }

  const server = Object.assign(await startCatalogServer(answer), {
    catalog: "main",
    credentials: undefined as object | undefined,
    addTable([catalog_name, schema_name]: readonly string[], name: string) {
      const entry = {
        name,
        catalog_name,
        schema_name,
        table_id: name,
        storage_location: `s3://lake/${name}`,
      };
      tables.set(`${catalog_name}.${schema_name}.${name}`, { ...entry, properties: { table_type: "delta" } });
    },
  });
  return server;
}
