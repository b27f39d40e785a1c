import type { Database, Table, TableInput } from "@aws-sdk/client-glue";
import type { Call } from "../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { Catalog, CatalogTable, NewTable, PageRequest, Properties } from "../base/catalog.ts";
import { shown } from "../base/checks.ts";
import type { Glue, Missing } from "./client.ts";

/** Largest page that the service gives. */
const MAX_PAGE = 100;

/** Parameter that marks the tables of Lance; its value is compared without regard to case. */
const MARK = "table_type";

/** Parameters of every entry that is created here, as other implementations set them. */
const MARKS: Properties = { [MARK]: "LANCE", managed_by: "storage", empty_table: "true" };

/** Properties of a namespace that the service keeps in fields of their own. */
const LOCATION = "location";
const DESCRIPTION = "description";

/**
 * Description of the storage for other tools, which cannot read the columns of Lance: the service requires a column, and
 * Hive's tools a format.
 */
const STORAGE = {
  Columns: [{ Name: "__placeholder_id", Type: "bigint", Comment: "Placeholder column for empty table" }],
  InputFormat: "org.apache.hadoop.mapred.TextInputFormat",
  OutputFormat: "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
  SerdeInfo: { SerializationLibrary: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe" },
};

/** Creates the catalog of an account. */
export function createGlueCatalog(glue: Glue, CatalogId?: string): Catalog {
  const { sdk, read, change } = glue;

  async function getDatabase(id: Identifier, call: Call): Promise<Database> {
    const [Name] = id as readonly [string];
    const command = new sdk.GetDatabaseCommand({ CatalogId, Name });
    const missing = missingNamespace(id);
    const { Database } = await read((client, options) => client.send(command, options), missing, call);
    if (Database?.Name === Name) return Database;
    throw new LanceError(...missing.notFound);
  }

  /** Returns the entry of a table. @throws LanceError InvalidInput for one of another format */
  async function getTable(id: Identifier, call: Call): Promise<Table> {
    const [DatabaseName, Name] = id as readonly [string, string];
    const command = new sdk.GetTableCommand({ CatalogId, DatabaseName, Name });
    const missing = missingTable(id);
    const { Table } = await read((client, options) => client.send(command, options), missing, call);
    if (Table?.Name !== Name || (Table.DatabaseName ?? DatabaseName) !== DatabaseName)
      throw new LanceError(...missing.notFound);
    if (isLance(Table)) return Table;
    throw new LanceError("InvalidInput", `${shown(id)} is not a Lance table`);
  }

  async function createTable(id: Identifier, table: NewTable, call: Call): Promise<CatalogTable> {
    const [DatabaseName] = id as readonly [string, string];
    const TableInput = inputOf(id, table);
    const command = new sdk.CreateTableCommand({ CatalogId, DatabaseName, TableInput });
    const exists = ["TableAlreadyExists", `the table ${shown(id)} exists`] as const;
    const missing = { ...missingNamespace(id.slice(0, -1)), exists };
    await change((client, options) => client.send(command, options), missing, call);
    return { location: table.location, properties: TableInput.Parameters };
  }

  return {
    name: "glue",
    vends: false,
    depths: [1, 1],
    tableDepths: [1, 1],
    marks: MARKS,
    refuseName: (name) =>
      name === name.toLowerCase() ? undefined : "has upper-case letters, which Glue turns into lower case",

    async listNamespaces(_, page, call) {
      const command = new sdk.GetDatabasesCommand({ CatalogId, ...pageOf(page) });
      const missing = { notFound: ["NamespaceNotFound", "there is no such Glue catalog"] } as const;
      const answer = await read((client, options) => client.send(command, options), missing, call);
      return namesOf(answer.DatabaseList, answer.NextToken);
    },

    async describeNamespace(id, call) {
      const database = await getDatabase(id, call);
      return { properties: propertiesOf(database), location: database.LocationUri };
    },

    async createNamespace(id, properties, call) {
      const [Name] = id as readonly [string];
      const { [LOCATION]: LocationUri, [DESCRIPTION]: Description, ...Parameters } = properties;
      const DatabaseInput = { Name, Parameters, LocationUri, Description };
      const command = new sdk.CreateDatabaseCommand({ CatalogId, DatabaseInput });
      await change((client, options) => client.send(command, options), missingNamespace(id), call);
      return properties;
    },

    async dropNamespace(id, call) {
      const [Name] = id as readonly [string];
      const missing = missingNamespace(id);
      // The service would drop the tables, too.
      const first = new sdk.GetTablesCommand({ CatalogId, DatabaseName: Name, MaxResults: 1 });
      const found = await read((client, options) => client.send(first, options), missing, call);
      // An empty page that is not the last one does not show that there are none.
      if ((found.TableList ?? []).length > 0 || found.NextToken !== undefined)
        throw new LanceError("NamespaceNotEmpty", `${shown(id)} has tables`);
      const command = new sdk.DeleteDatabaseCommand({ CatalogId, Name });
      await change((client, options) => client.send(command, options), missing, call);
    },

    async listTables(id, page, call) {
      const [DatabaseName] = id as readonly [string];
      const command = new sdk.GetTablesCommand({ CatalogId, DatabaseName, ...pageOf(page) });
      const missing = missingNamespace(id);
      const answer = await read((client, options) => client.send(command, options), missing, call);
      return namesOf(answer.TableList?.filter(isLance), answer.NextToken);
    },

    describeTable: async (id, _, call) => tableOf(await getTable(id, call)),
    createTable,

    async replaceTable(id, table, call) {
      const [DatabaseName] = id as readonly [string, string];
      const before = await getTable(id, call).catch((error: unknown) => {
        if (isLanceError(error, "TableNotFound")) return undefined;
        throw error;
      });
      if (before === undefined) return createTable(id, table, call);
      const TableInput = inputOf(id, table);
      // The version makes the service refuse the change if another one came between.
      const { VersionId } = before;
      const command = new sdk.UpdateTableCommand({ CatalogId, DatabaseName, TableInput, VersionId });
      await change((client, options) => client.send(command, options), missingTable(id), call);
      return { location: table.location, properties: TableInput.Parameters };
    },

    async removeTable(id, call) {
      const [DatabaseName, Name] = id as readonly [string, string];
      const command = new sdk.DeleteTableCommand({ CatalogId, DatabaseName, Name });
      await change((client, options) => client.send(command, options), missingTable(id), call);
    },

    ready: () => glue.ready(CatalogId),
    async close() {
      glue.close();
    },
  };
}

function namesOf(entries: readonly { readonly Name?: string | undefined }[] = [], next?: string) {
  return { names: entries.flatMap(({ Name }) => Name ?? []), next };
}

function pageOf({ token, size }: PageRequest) {
  return {
    MaxResults: Math.min(size ?? MAX_PAGE, MAX_PAGE),
    ...(token !== undefined && { NextToken: token }),
  };
}

function isLance({ Parameters, TableType }: Table): boolean {
  return Parameters?.[MARK]?.toUpperCase() === MARKS[MARK] && (TableType ?? EXTERNAL) === EXTERNAL;
}

const EXTERNAL = "EXTERNAL_TABLE";

function propertiesOf({ Parameters, LocationUri, Description }: Database): Properties {
  return {
    ...Parameters,
    ...(LocationUri && { [LOCATION]: LocationUri }),
    ...(Description && { [DESCRIPTION]: Description }),
  };
}

function tableOf({ StorageDescriptor, Parameters = {} }: Table): CatalogTable {
  return { location: StorageDescriptor?.Location || undefined, properties: Parameters };
}

function inputOf(
  id: Identifier,
  { location, properties: Parameters }: NewTable,
): TableInput & { Parameters: Properties } {
  const StorageDescriptor = { ...STORAGE, Location: location };
  return { Name: id.at(-1), TableType: EXTERNAL, Parameters, StorageDescriptor };
}

function missingNamespace(id: Identifier): Missing {
  return {
    notFound: ["NamespaceNotFound", `there is no namespace ${shown(id)}`],
    exists: ["NamespaceAlreadyExists", `the namespace ${shown(id)} exists`],
  };
}

function missingTable(id: Identifier): Missing {
  return { notFound: ["TableNotFound", `there is no table ${shown(id)}`] };
}
