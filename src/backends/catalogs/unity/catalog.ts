import type { Call } from "../../../namespace/call/call.ts";
import { EXPIRY_OPTION, inEverySpelling } from "../../../namespace/credential-options.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, sameIdentifier } from "../../../namespace/identifier.ts";
import { createFacts, objectIn, objectsIn, propertiesIn, textIn } from "../base/answers.ts";
import type { Catalog, CatalogTable, NewTable, PageRequest, Properties } from "../base/catalog.ts";
import { shown } from "../base/checks.ts";
import type { Json, JsonClient, JsonRequest } from "../base/json-client.ts";

/** Property that marks the tables of Lance; its value is compared without regard to case. */
const MARK = "table_type";
const MARKS: Properties = { [MARK]: "lance", managed_by: "catalog" };

/** Column of every entry, because the service requires one, as other implementations write it. */
const COLUMNS = [
  {
    name: "__placeholder_id",
    type_text: "LONG",
    type_json: '{"type":"long"}',
    type_name: "LONG",
    position: 0,
    nullable: true,
  },
];

const facts = createFacts([
  [[404], /"(?:SCHEMA|CATALOG)_NOT_FOUND"|\b(?:Schema|Catalog) not found/, "NamespaceNotFound"],
  [[404], /"TABLE_NOT_FOUND"|\bTable not found/, "TableNotFound"],
  [[400, 409], /"(?:SCHEMA|CATALOG)_ALREADY_EXISTS"/, "NamespaceAlreadyExists"],
  [[400, 409], /"TABLE_ALREADY_EXISTS"/, "TableAlreadyExists"],
  [[400, 409], /"FAILED_PRECONDITION"|not empty|non[- ]empty/i, "NamespaceNotEmpty"],
  [[409], /"(?:ABORTED|\w*CONFLICT)"/, "ConcurrentModification"],
]);

/** Errors by which the service says that it has no credentials for a table, which is not that the caller may have none. */
const NOT_VENDED: ReadonlySet<string> = new Set([
  "InvalidInput",
  "Unsupported",
  "TableNotFound",
  "NamespaceNotEmpty",
]);

/** Creates the catalog of a Unity server: catalogs contain schemas, which contain tables. */
export function createUnityCatalog(client: JsonClient, base: string): Catalog {
  const fullName = (id: Identifier) => id.map(encodeURIComponent).join(".");
  const get = (path: string, resource: "namespace" | "table", call: Call, query: JsonRequest["query"] = {}) =>
    client.send({ method: "GET", path: `${base}${path}`, query, facts: facts(resource) }, call);

  async function getTable(id: Identifier, call: Call): Promise<Json> {
    const table = await get(`/tables/${fullName(id)}`, "table", call);
    if (!sameIdentifier(idOf(table), id))
      throw new LanceError("TableNotFound", `there is no table ${shown(id)}`);
    if (isLance(table)) return table;
    throw new LanceError("InvalidInput", `${shown(id)} is not a Lance table`);
  }

  /** Returns credentials for the files of a table: to write, if the caller may. @throws LanceError PermissionDenied for a caller who gets none */
  async function credentialsFor(table: Json, call: Call): Promise<Properties> {
    const table_id = textIn(table, "table_id");
    if (table_id === undefined) return {};
    const operations = (await (call.may?.("write") ?? true)) ? ["READ_WRITE", "READ"] : ["READ"];
    let denial: LanceError | undefined;
    for (const operation of operations) {
      const request = { method: "POST", path: `${base}/temporary-table-credentials`, isRead: true } as const;
      try {
        return optionsOf(
          await client.send({ ...request, body: { table_id, operation }, facts: facts("table") }, call),
        );
      } catch (error) {
        if (isLanceError(error, "PermissionDenied")) denial = error;
        else if (!(error instanceof LanceError) || !NOT_VENDED.has(error.kind)) throw error;
      }
    }
    if (denial !== undefined) throw denial;
    return {};
  }

  async function describeTable(id: Identifier, vends: boolean, call: Call): Promise<CatalogTable> {
    const table = await getTable(id, call);
    return { ...tableOf(table), storageOptions: vends ? await credentialsFor(table, call) : {} };
  }

  return {
    name: "unity",
    vends: true,
    depths: [2, 2],
    tableDepths: [2, 2],
    marks: MARKS,
    refuseName: (name) => (/[.\p{Cc}]/u.test(name) ? "contains a dot or a control character" : undefined),

    async listNamespaces([catalog_name], page, call) {
      if (catalog_name === undefined) {
        const answer = await get("/catalogs", "namespace", call, pageOf(page));
        return pageIn(answer, objectsIn(answer, "catalogs"));
      }
      const answer = await get("/schemas", "namespace", call, { catalog_name, ...pageOf(page) });
      const schemas = objectsIn(answer, "schemas").filter(
        (each) => textIn(each, "catalog_name") === catalog_name,
      );
      return pageIn(answer, schemas);
    },

    async describeNamespace(id, call) {
      const path = `${id.length === 1 ? "/catalogs" : "/schemas"}/${fullName(id)}`;
      const answer = await get(path, "namespace", call);
      const names =
        id.length === 1 ? [textIn(answer, "name")] : [textIn(answer, "catalog_name"), textIn(answer, "name")];
      if (!sameIdentifier(names.map(String), id))
        throw new LanceError("NamespaceNotFound", `there is no namespace ${shown(id)}`);
      return { properties: propertiesIn(answer, "properties"), location: textIn(answer, "storage_root") };
    },

    async createNamespace([catalog_name, name], properties, call) {
      const body = { name, catalog_name, properties };
      const path = `${base}/schemas`;
      const answer = await client.send({ method: "POST", path, body, facts: facts("namespace") }, call);
      return propertiesIn(answer, "properties");
    },

    async dropNamespace(id, call) {
      const request = { method: "DELETE", path: `${base}/schemas/${fullName(id)}` } as const;
      await client.send({ ...request, query: { force: "false" }, facts: facts("namespace") }, call);
    },

    async listTables(id, page, call) {
      const [catalog_name, schema_name] = id;
      const answer = await get("/tables", "namespace", call, { catalog_name, schema_name, ...pageOf(page) });
      const tables = objectsIn(answer, "tables").filter(
        (each) => isLance(each) && sameIdentifier(idOf(each).slice(0, -1), id),
      );
      return pageIn(answer, tables);
    },

    describeTable,

    async createTable(id, table, call) {
      const request = { method: "POST", path: `${base}/tables`, body: inputOf(id, table) } as const;
      return tableOf(await client.send({ ...request, facts: facts("table") }, call));
    },

    async removeTable(id, call) {
      const path = `${base}/tables/${fullName(id)}`;
      await client.send({ method: "DELETE", path, facts: facts("table") }, call);
    },

    ready: () => client.ready(`${base}/catalogs?max_results=1`),
    close: () => client.close(),
  };
}

function pageOf({ token, size }: PageRequest) {
  return { page_token: token, max_results: size === undefined ? undefined : String(size) };
}

function pageIn(answer: Json, entries: readonly Json[]) {
  return {
    names: entries.flatMap((each) => textIn(each, "name") ?? []),
    next: textIn(answer, "next_page_token"),
  };
}

function idOf(table: Json): Identifier {
  return ["catalog_name", "schema_name", "name"].map((name) => textIn(table, name) ?? "");
}

function isLance(table: Json): boolean {
  return propertiesIn(table, "properties")[MARK]?.toLowerCase() === MARKS[MARK];
}

function tableOf(table: Json): CatalogTable {
  return {
    location: textIn(table, "storage_location") || undefined,
    properties: propertiesIn(table, "properties"),
  };
}

function inputOf([catalog_name, schema_name, name]: Identifier, { location, properties }: NewTable) {
  return {
    name,
    catalog_name,
    schema_name,
    table_type: "EXTERNAL",
    data_source_format: "TEXT",
    columns: COLUMNS,
    storage_location: location,
    properties,
  };
}

/** Returns the storage options of temporary credentials. */
function optionsOf(answer: Json): Properties {
  const aws = objectIn(answer, "aws_temp_credentials") ?? {};
  const azure = objectIn(answer, "azure_user_delegation_sas") ?? {};
  const gcp = objectIn(answer, "gcp_oauth_token") ?? {};
  const expiry = answer["expiration_time"];
  const options = {
    aws_access_key_id: textIn(aws, "access_key_id"),
    aws_secret_access_key: textIn(aws, "secret_access_key"),
    aws_session_token: textIn(aws, "session_token"),
    azure_storage_sas_token: textIn(azure, "sas_token"),
    google_storage_token: textIn(gcp, "oauth_token"),
    [EXPIRY_OPTION]: typeof expiry === "number" ? String(expiry) : undefined,
  };
  const given = Object.entries(options).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return inEverySpelling(Object.fromEntries(given));
}
