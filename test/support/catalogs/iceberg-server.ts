import {
  type CatalogAnswer,
  type CatalogRequest,
  type CatalogServer,
  pageOf,
  startCatalogServer,
} from "./catalog-server.ts";

/** Kind of catalog whose public OpenAPI document the simulation follows. */
export type IcebergKind = "polaris" | "lakekeeper";

/** A simulation of Polaris or Lakekeeper. */
export interface IcebergServer extends CatalogServer {
  readonly warehouse: string;
  /** Tokens that it accepts. Default: it asks for none. */
  tokens: Set<string> | undefined;
  /** Configuration that a description with credentials has. Default: none. */
  credentials: Record<string, string> | undefined;
  /** Locations whose files it was told to delete. */
  readonly purged: string[];
  /** Adds an entry of any format. */
  addTable(namespace: readonly string[], name: string, format: string): void;
  /** Returns the locations of all tables by their names; those of namespaces with equal names of tables would hide each other. */
  locations(): ReadonlyMap<string, string>;
}

const PREFIXES = { polaris: "lake", lakekeeper: "7c9d4f8e-0000-4000-8000-000000000001" } as const;
const ROOTS = {
  polaris: ["/api/catalog/v1/", "/api/catalog/polaris/v1/", "storage-access-configs"],
  lakekeeper: ["/catalog/v1/", "/lakekeeper/v1/", "storage-credentials"],
} as const;

interface Table {
  readonly name: string;
  readonly format: string;
  readonly "base-location": string;
  readonly properties: Record<string, string>;
}

const failure = (code: number, type: string, message = type): CatalogAnswer => ({
  status: code,
  body: { error: { message, type, code } },
});

/**
 * Starts a simulation made from the public documents of Iceberg's REST API and of the generic tables of Polaris and Lakekeeper. It
 * is not the real service: it has the paths, the shapes, the paging and the errors of the documents.
 */
export async function startIcebergServer(kind: IcebergKind): Promise<IcebergServer> {
  const prefix = PREFIXES[kind];
  const [namespacesRoot, tablesRoot, credentialsField] = ROOTS[kind];
  const namespaces = new Map<string, { id: string[]; properties: Record<string, string> }>();
  const tables = new Map<string, Map<string, Table>>();

  function answer(request: CatalogRequest): CatalogAnswer {
    const { path, headers } = request;
    const token = headers.authorization?.replace(/^Bearer /, "");
    if (server.tokens !== undefined && !server.tokens.has(token ?? ""))
      return failure(401, "NotAuthorizedException");
    if (path === `${namespacesRoot}config`)
      return { status: 200, body: { defaults: {}, overrides: { prefix } } };
    if (path.startsWith(`${tablesRoot}${prefix}/`)) {
      const [first, key, part, name] = path
        .slice(tablesRoot.length + prefix.length + 1)
        .split("/")
        .map(decodeURIComponent);
      if (first === "generic-tables")
        return kind === "polaris" ? failure(404, "NotFoundException") : rename(request);
      if (part === "generic-tables")
        return name === undefined ? ofNamespace(key ?? "", request) : ofTable(key ?? "", name, request);
    }
    if (path.startsWith(`${namespacesRoot}${prefix}/namespaces`)) {
      const key = path.slice(namespacesRoot.length + prefix.length + "/namespaces/".length);
      return key === "" ? ofNamespaces(request) : ofOne(decodeURIComponent(key), request);
    }
    return { status: 404, body: "<html>no route</html>", headers: { "content-type": "text/html" } };
  }

  function ofNamespaces({ method, query, body }: CatalogRequest): CatalogAnswer {
    if (method === "GET") {
      const parent = query.get("parent") ?? "";
      if (parent !== "" && !namespaces.has(parent)) return failure(404, "NoSuchNamespaceException");
      const depth = parent === "" ? 1 : parent.split("\u001f").length + 1;
      const found = [...namespaces]
        .filter(
          ([key, { id }]) => id.length === depth && (parent === "" || key.startsWith(`${parent}\u001f`)),
        )
        .map(([, { id }]) => id);
      const { page, next } = pageOf(found, query.get("pageToken") || null, query.get("pageSize"));
      return { status: 200, body: { namespaces: page, "next-page-token": next ?? null } };
    }
    const id = body["namespace"] as string[];
    const key = id.join("\u001f");
    if (namespaces.has(key)) return failure(409, "AlreadyExistsException");
    if (id.length > 1 && !namespaces.has(id.slice(0, -1).join("\u001f")))
      return failure(404, "NoSuchNamespaceException");
    const properties = body["properties"] as Record<string, string>;
    namespaces.set(key, { id, properties });
    tables.set(key, new Map());
    return { status: 200, body: { namespace: id, properties } };
  }

  function ofOne(key: string, { method }: CatalogRequest): CatalogAnswer {
    const found = namespaces.get(key);
    if (found === undefined) return failure(404, "NoSuchNamespaceException");
    if (method === "GET") return { status: 200, body: { namespace: found.id, properties: found.properties } };
    const hasChildren = [...namespaces.keys()].some((each) => each.startsWith(`${key}\u001f`));
    if (hasChildren || (tables.get(key)?.size ?? 0) > 0) return failure(409, "NamespaceNotEmptyException");
    namespaces.delete(key);
    return { status: 204 };
  }

  function ofNamespace(key: string, { method, query, body }: CatalogRequest): CatalogAnswer {
    const all = tables.get(key);
    const found = namespaces.get(key);
    if (all === undefined || found === undefined) return failure(404, "NoSuchNamespaceException");
    if (method === "POST") {
      const table = body as unknown as Table;
      if (all.has(table.name)) return failure(409, "AlreadyExistsException");
      all.set(table.name, table);
      return { status: 200, body: { table } };
    }
    const identifiers = [...all.values()].map(({ name, format }) => {
      return { namespace: found.id, name, ...(kind === "lakekeeper" && { format }) };
    });
    const { page, next } = pageOf(identifiers, query.get("pageToken") || null, query.get("pageSize"));
    return { status: 200, body: { identifiers: page, "next-page-token": next ?? null } };
  }

  function ofTable(key: string, name: string, { method, headers, query }: CatalogRequest): CatalogAnswer {
    const table = tables.get(key)?.get(name);
    if (table === undefined)
      return failure(404, namespaces.has(key) ? "NoSuchTableException" : "NoSuchNamespaceException");
    if (method === "DELETE") {
      tables.get(key)?.delete(name);
      if (query.get("purgeRequested") === "true") server.purged.push(table["base-location"]);
      return { status: 204 };
    }
    const header =
      kind === "polaris" ? "polaris-generic-table-access-delegation" : "x-iceberg-access-delegation";
    if (headers[header] !== "vended-credentials") return { status: 200, body: { table } };
    // Polaris must fail where it cannot give what is asked for.
    if (server.credentials === undefined && kind === "polaris") return failure(400, "BadRequestException");
    const configs =
      server.credentials === undefined
        ? []
        : [{ prefix: table["base-location"], config: server.credentials }];
    return { status: 200, body: { table, [credentialsField]: configs } };
  }

  function rename({ body }: CatalogRequest): CatalogAnswer {
    const { source, destination } = body as Record<string, { namespace: string[]; name: string }>;
    const from = tables.get(source?.namespace.join("\u001f") ?? "");
    const to = tables.get(destination?.namespace.join("\u001f") ?? "");
    const table = from?.get(source?.name ?? "");
    if (table === undefined || to === undefined || destination === undefined)
      return failure(404, "NoSuchTableException");
    if (to.has(destination.name)) return failure(409, "AlreadyExistsException");
    from?.delete(table.name);
    to.set(destination.name, { ...table, name: destination.name });
    return { status: 204 };
  }

  const server = Object.assign(await startCatalogServer(answer), {
    warehouse: "lake",
    purged: [] as string[],
    tokens: undefined as Set<string> | undefined,
    credentials: undefined as Record<string, string> | undefined,
    addTable(namespace: readonly string[], name: string, format: string) {
      const table = { name, format, "base-location": `s3://lake/${name}`, properties: {} };
      tables.get(namespace.join("\u001f"))?.set(name, table);
    },
    locations() {
      const all = [...tables.values()].flatMap((each) => [...each.values()]);
      return new Map(all.map((table) => [table.name, table["base-location"]]));
    },
  });
  return server;
}
