import { create } from "@bufbuild/protobuf";
import {
  DeclareTableResponseSchema,
  DeregisterTableResponseSchema,
  type DescribeTableRequest,
  DescribeTableResponseSchema,
  DropTableResponseSchema,
  ListAllTablesResponseSchema,
  ListTablesResponseSchema,
  RegisterTableMode,
  RegisterTableResponseSchema,
  RenameTableResponseSchema,
  TableExistsResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { checkChosenLocation } from "../../../namespace/call/chosen-location.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/lance-namespace.ts";
import type {
  Catalog,
  CatalogBackendOptions,
  CatalogNamespace,
  CatalogTable,
  NewTable,
  Properties,
} from "./catalog.ts";
import { type Checks, shown } from "./checks.ts";
import { listNames } from "./paging.ts";
import { below, checkLocation, createTableWalk, drawLocation, faultOf } from "./walk-tables.ts";

/** Context of the operations on tables. */
export interface TableContext {
  readonly catalog: Catalog;
  readonly checks: Checks;
  readonly options: CatalogBackendOptions;
  /** Describes a namespace of the gateway's tree. */
  describeNamespace(id: Identifier, call: Call): Promise<CatalogNamespace>;
}

type TableOperations = Pick<
  LanceNamespace,
  | "listTables"
  | "listAllTables"
  | "describeTable"
  | "tableExists"
  | "declareTable"
  | "registerTable"
  | "deregisterTable"
>;

/** Properties and bytes that an object may have at most, because every description carries them. */
const MAX_PROPERTIES = 1_000;
const MAX_PROPERTY_BYTES = 64 * 1024;

/** Creates the operations on tables; drops and renames are there if the catalog has them. */
export function createTableOperations(
  context: TableContext,
): TableOperations & Partial<Pick<LanceNamespace, "dropTable" | "renameTable">> {
  const { catalog, checks, options, describeNamespace } = context;
  const { full } = checks;
  const walkTables = createTableWalk(catalog, options.within ?? []);

  /** Describes a table, whose location must be one that clients can open. */
  async function describe(call: Call, vends: boolean): Promise<CatalogTable & { readonly location: string }> {
    const { id } = call;
    checks.table(id);
    const table = await catalog.describeTable(full(id), vends, call);
    const { location } = table;
    if (location === undefined)
      throw new LanceError("InvalidTableState", `${shown(id)} has no location in ${catalog.name}`);
    const fault = faultOf(location);
    if (fault === undefined) return { ...table, location };
    throw new LanceError("InvalidTableState", `the location of ${shown(id)} in ${catalog.name} ${fault}`);
  }

  /**
   * Describes a table with credentials, as far as they are wanted. A caller that asks for them learns that the catalog denies them; a description
   * that does not say comes without.
   */
  async function describeWith(call: Call, wanted: boolean | undefined) {
    try {
      return await describe(call, wanted ?? true);
    } catch (error) {
      if (wanted !== undefined || !isLanceError(error, "PermissionDenied")) throw error;
      return describe(call, false);
    }
  }

  /** Returns the credentials of a table that has just been created; without them the creation has succeeded, too. */
  async function credentialsOf(call: Call): Promise<Properties | undefined> {
    try {
      return (await catalog.describeTable(full(call.id), true, call)).storageOptions;
    } catch (error) {
      call.log.warn({ err: error }, "the catalog gives no credentials for the table that it has created");
      return undefined;
    }
  }

  const accessOf = (own: Properties | undefined) => ({ ...options.storageOptions, ...own });

  /** Checks a new entry and its namespace, and returns what the catalog gets. */
  async function admit(call: Call, given: Properties, location: string | undefined): Promise<NewTable> {
    checks.newTable(call.id);
    checkProperties(call.id, given);
    const properties = withMarks(catalog, call.id, given);
    if (location !== undefined) checkLocation(location);
    return { location: await placeOf(call, location), properties };
  }

  /** Returns the location of a new entry, whose namespace must exist. */
  async function placeOf(call: Call, location: string | undefined): Promise<string> {
    const { id } = call;
    const namespace = await describeNamespace(id.slice(0, -1), call);
    if (location !== undefined) return location;
    const folder = namespace.location;
    const name = id.at(-1) ?? "";
    if (folder !== undefined && faultOf(folder) === undefined) return drawLocation(folder, name);
    if (options.tableRoot !== undefined)
      return drawLocation(below(options.tableRoot, ...full(id).slice(0, -1)), name);
    throw new LanceError(
      "InvalidInput",
      `${shown(id)} needs a location, because its namespace has none in ${catalog.name} and the gateway has no --table-root`,
    );
  }

  const operations: TableOperations = {
    async listTables(request, call) {
      if (request.includeDeclared === false) throw needsRows(catalog, "which tables have data");
      const { id } = call;
      checks.names(id);
      const namespace = full(id);
      const [least, most] = catalog.tableDepths;
      if (namespace.length < least || namespace.length > most) {
        await describeNamespace(id, call);
        return create(ListTablesResponseSchema);
      }
      const { names, pageToken } = await listNames(
        (page) => catalog.listTables(namespace, page, call),
        request,
      );
      return create(ListTablesResponseSchema, {
        tables: names,
        ...(pageToken !== undefined && { pageToken }),
      });
    },

    async listAllTables(request, call) {
      if (request.includeDeclared === false) throw needsRows(catalog, "which tables have data");
      const { names, pageToken } = await walkTables(request, call);
      return create(ListAllTablesResponseSchema, {
        tables: names,
        ...(pageToken !== undefined && { pageToken }),
      });
    },

    async describeTable(request, call) {
      refuseDetails(catalog, request);
      const { location, properties, storageOptions } = await describeWith(call, request.vendCredentials);
      return create(DescribeTableResponseSchema, {
        table: call.id.at(-1) ?? "",
        namespace: call.id.slice(0, -1),
        location,
        properties: { ...properties },
        storageOptions: accessOf(storageOptions),
        managedVersioning: false,
        ...(request.withTableUri && { tableUri: location }),
      });
    },

    async tableExists({ version }, call) {
      if (version !== undefined) throw needsRows(catalog, "the versions of tables");
      await describe(call, false);
      return create(TableExistsResponseSchema);
    },

    async declareTable({ location: given, properties, vendCredentials = true }, call) {
      await checkChosenLocation(call, given);
      const entry = await admit(call, properties, given || undefined);
      const table = await catalog.createTable(full(call.id), entry, call);
      const vended = vendCredentials && catalog.vends ? await credentialsOf(call) : undefined;
      return create(DeclareTableResponseSchema, {
        location: table.location ?? entry.location,
        properties: { ...table.properties },
        storageOptions: accessOf(vended),
        managedVersioning: false,
      });
    },

    async registerTable({ location: given, mode, properties }, call) {
      if (given === "") throw new LanceError("InvalidInput", "location must not be empty");
      const entry = await admit(call, properties, given);
      const path = full(call.id);
      if (mode !== RegisterTableMode.OVERWRITE)
        return registered(await catalog.createTable(path, entry, call), entry);
      if (catalog.replaceTable === undefined)
        throw new LanceError("Unsupported", `${catalog.name} cannot replace an entry in a single step`);
      return registered(await catalog.replaceTable(path, entry, call), entry);
    },

    async deregisterTable(_, call) {
      const { location, properties } = await describe(call, false);
      await catalog.removeTable(full(call.id), call);
      return create(DeregisterTableResponseSchema, {
        id: [...call.id],
        location,
        properties: { ...properties },
      });
    },
  };

  const { dropTable: drop, renameTable: rename } = catalog;
  const dropping: Partial<Pick<LanceNamespace, "dropTable">> =
    drop === undefined
      ? {}
      : {
          async dropTable(_, call) {
            const { location, properties } = await describe(call, false);
            await drop(full(call.id), call);
            return create(DropTableResponseSchema, {
              id: [...call.id],
              location,
              properties: { ...properties },
            });
          },
        };
  if (rename === undefined) return { ...operations, ...dropping };
  return {
    ...operations,
    ...dropping,
    async renameTable({ newTableName, newNamespaceId }, call) {
      const { id } = call;
      const to = [...(newNamespaceId.length > 0 ? newNamespaceId : id.slice(0, -1)), newTableName];
      checks.newTable(to);
      await describe(call, false);
      await describeNamespace(to.slice(0, -1), call);
      await rename(full(id), full(to), call);
      return create(RenameTableResponseSchema);
    },
  };
}

function registered(table: CatalogTable, { location }: NewTable) {
  return create(RegisterTableResponseSchema, {
    location: table.location ?? location,
    properties: { ...table.properties },
  });
}

/** Refuses what only the files of a table tell. */
function refuseDetails(catalog: Catalog, request: DescribeTableRequest): void {
  const { version, tag, branch = "", loadDetailedMetadata, checkDeclared } = request;
  if (version !== undefined || tag !== undefined || (branch !== "" && branch !== "main"))
    throw needsRows(catalog, "the versions of tables");
  if (loadDetailedMetadata) throw needsRows(catalog, "the schema of tables");
  if (checkDeclared) throw needsRows(catalog, "which tables have data");
}

function needsRows({ name }: Catalog, what: string): LanceError {
  return new LanceError(
    "Unsupported",
    `${name} does not tell ${what}; with --rows here, the gateway reads it`,
  );
}

function checkProperties(id: Identifier, properties: Properties): void {
  const entries = Object.entries(properties);
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  if (entries.length <= MAX_PROPERTIES && bytes <= MAX_PROPERTY_BYTES) return;
  throw new LanceError(
    "InvalidInput",
    `the properties of ${shown(id)} are more than ${MAX_PROPERTIES}, or longer than ${MAX_PROPERTY_BYTES} bytes`,
  );
}

/**
 * Adds the marks of a catalog to the properties of a new entry. Marks are compared without regard to case, as they are when entries are read,
 * and a call's own spelling is kept.
 *
 * @throws LanceError InvalidInput for a property that contradicts a mark
 */
function withMarks({ name, marks }: Catalog, id: Identifier, properties: Properties): Properties {
  for (const [key, mark] of Object.entries(marks)) {
    const given = properties[key];
    if (given === undefined || given.toLowerCase() === mark.toLowerCase()) continue;
    throw new LanceError(
      "InvalidInput",
      `the property ${key} of ${shown(id)} must be ${JSON.stringify(mark)}, not ${JSON.stringify(given)}: it marks the Lance tables of ${name}`,
    );
  }
  return { ...marks, ...properties };
}
