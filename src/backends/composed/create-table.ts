import { create } from "@bufbuild/protobuf";
import {
  CreateTableMode,
  type CreateTableResponse,
  CreateTableResponseSchema,
} from "../../gen/lance/namespace/v1/data_pb.ts";
import { DeclareTableRequestSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { METHODS } from "../../namespace/operations/operations.ts";
import type { UploadContext } from "../dir/operations/context.ts";
import { acceptExisting } from "../dir/operations/rows/create-table.ts";
import { writeFirst } from "../dir/operations/rows/first-version.ts";
import { type ReceivedRows, receiveRows } from "../dir/operations/rows/received-rows.ts";
import { isWritten } from "../dir/operations/tables/table-data.ts";
import {
  callOfGateway,
  type DescribedTable,
  type DescribedTables,
  describedTable,
} from "./described-tables.ts";
import { refuseManaged } from "./managed-tables.ts";
import type { OpenedTable, OpenedTables } from "./opened-tables.ts";

/** Parts of {@link createTableCreation}. */
export interface CreationParts {
  readonly catalog: Backend;
  readonly descriptions: DescribedTables;
  readonly opened: OpenedTables;
  readonly uploads: UploadContext;
}

/**
 * Creates the operation that creates a table from rows: the upstream declares it, and this gateway writes its data.
 *
 * The first rows are checked before the declaration, and the answer follows the data. After a crash in between, the upstream has a declared
 * table, which the same call fills when it is repeated. Of several calls that fill one, exactly one succeeds.
 */
export function createTableCreation({
  catalog,
  descriptions,
  opened,
  uploads,
}: CreationParts): LanceNamespace["createTable"] {
  const { declareTable } = catalog.operations;

  /** Returns the table if the upstream has it. */
  async function find(call: Call): Promise<DescribedTable | undefined> {
    try {
      return await descriptions.describe(call, call.id, true);
    } catch (error) {
      if (isLanceError(error, "TableNotFound")) return undefined;
      throw error;
    }
  }
  async function declare(call: Call, properties: Record<string, string>): Promise<DescribedTable> {
    if (declareTable === undefined)
      throw new LanceError("Unsupported", "the upstream catalog declares no tables, so none can be created");
    const { id } = call;
    const request = create(DeclareTableRequestSchema, { id: [...id], vendCredentials: true, properties });
    try {
      return describedTable(id, await declareTable(request, callOfGateway(call, METHODS.declareTable, id)));
    } catch (error) {
      // Another caller was faster, or the upstream repeated a declaration whose answer was lost.
      const found = isLanceError(error, "TableAlreadyExists") ? await find(call) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** Gives a table that the upstream has its data. */
  async function fill(
    { storage: { context }, table }: OpenedTable,
    rows: ReceivedRows,
    mode: CreateTableMode | undefined,
    properties: Record<string, string>,
  ): Promise<CreateTableResponse> {
    const isReplaced = mode === CreateTableMode.OVERWRITE;
    const version = async () => {
      if (await isWritten(context, table)) {
        if (isReplaced) return rows.replace(table);
        throw tableExists(table.id);
      }
      return writeFirst(context, table, () => rows.create(table));
    };
    if (mode === CreateTableMode.EXIST_OK && (await isWritten(context, table)))
      return acceptExisting(context, table, rows);
    refuseOtherProperties(table.properties, properties);
    return create(CreateTableResponseSchema, {
      location: table.path,
      version: BigInt(await version()),
      properties: { ...table.properties },
    });
  }

  return async ({ mode, properties }, data, call) => {
    const found = await find(call);
    let place: OpenedTable | undefined;
    const makePlace = async () => {
      const described = found ?? (await declare(call, properties));
      if (described.isManaged) throw refuseManaged(call.id);
      place = await opened.open(call, described);
      return { storage: place.storage.context, table: place.table };
    };
    try {
      const existing = found === undefined ? undefined : await makePlace();
      return await receiveRows(
        uploads,
        data,
        call,
        { place: existing ?? makePlace, overwrite: true },
        (rows) => fill(place as OpenedTable, rows, mode, properties),
      );
    } finally {
      place?.release();
      descriptions.forget(call.id);
    }
  };
}

/** Properties of an existing table are the upstream's, and no operation of its changes them. */
function refuseOtherProperties(
  existing: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): void {
  for (const name in wanted) {
    if (existing[name] === wanted[name]) continue;
    throw new LanceError(
      "Unsupported",
      `the table exists with another property ${JSON.stringify(name)}, and the upstream catalog has no operation to change it`,
    );
  }
}

function tableExists(id: Identifier): LanceError {
  return new LanceError("TableAlreadyExists", `Table '${joinIdentifier(id)}' already exists`);
}
