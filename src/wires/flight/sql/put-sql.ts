import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../arrow/ipc/ipc-forms.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import {
  type FlightData,
  type PutResult,
  PutResultSchema,
} from "../../../gen/arrow/flight/protocol/Flight_pb.ts";
import {
  type CommandStatementIngest,
  DoPutPreparedStatementResultSchema,
  DoPutUpdateResultSchema,
  CommandStatementIngest_TableDefinitionOptions_TableExistsOption as Existing,
  CommandStatementIngest_TableDefinitionOptions_TableNotExistOption as Missing,
} from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { CreateTableMode, InsertMode } from "../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { PipelineCalls, Presented } from "../pipeline-calls.ts";
import { type PutStart, rowsIn, streamOf, type Write } from "../put-stream.ts";
import type { Statement, Tickets } from "../tickets.ts";
import { namespaceOf } from "./catalog-answers.ts";
import { parseSqlCommand, refuseTransaction } from "./commands.ts";
import { type FlightSqlOptions, servedSql } from "./flight-sql.ts";
import { openHandle } from "./prepared.ts";
import { catalogOf, requireOwner, sqlCallerOf } from "./statements.ts";

const { createTable, describeTable, insertIntoTable } = LanceNamespaceService.method;

/** Largest stream of parameters, in bytes. They may travel in the handle of the statement. */
export const MAX_PARAMETER_BYTES = 256 * 1024;

/** Largest stream of parameters for an update, which runs for each of its rows, in bytes. */
const MAX_UPDATE_BYTES = 4 * 1024 * 1024;

/** Serves a DoPut whose descriptor is a command of Flight SQL. */
export async function putSql(
  start: PutStart,
  calls: PipelineCalls,
  signal: AbortSignal,
  tickets: Tickets,
  sql: FlightSqlOptions | undefined,
): Promise<PutResult> {
  if (start.options !== undefined)
    throw new LanceError("InvalidInput", "a command of Flight SQL must not have app_metadata");
  const command = parseSqlCommand(start.descriptor.cmd);
  switch (command.$typeName) {
    case "arrow.flight.protocol.sql.CommandStatementIngest": {
      return countOf(await ingest(command, start, calls, signal));
    }
    case "arrow.flight.protocol.sql.CommandPreparedStatementQuery": {
      const content = openHandle(command.preparedStatementHandle, tickets);
      const owner = await requireOwner(calls, { heldBy: content.owner });
      const parameters = await readParameters(start, signal, MAX_PARAMETER_BYTES);
      if (parameters.rows !== 1)
        throw new LanceError(
          "Unsupported",
          `a prepared query runs with one row of parameters, not with ${parameters.rows}`,
        );
      const rows = {
        kind: "prepared",
        statement: { ...content.statement, parameters: parameters.stream },
      } as const;
      const { ticket } = tickets.issue(rows, owner, content.database);
      const result = create(DoPutPreparedStatementResultSchema, { preparedStatementHandle: ticket.ticket });
      return create(PutResultSchema, { appMetadata: toBinary(DoPutPreparedStatementResultSchema, result) });
    }
    case "arrow.flight.protocol.sql.CommandStatementUpdate": {
      refuseTransaction(command);
      const statement = { text: command.query, namespacePath: calls.namespacePath };
      return countOf(await update(statement, calls, {}, sql));
    }
    case "arrow.flight.protocol.sql.CommandPreparedStatementUpdate": {
      const { statement, owner: heldBy, database } = openHandle(command.preparedStatementHandle, tickets);
      const { columns, stream } = await readParameters(start, signal, MAX_UPDATE_BYTES);
      const parameters = columns === 0 ? statement.parameters : stream;
      return countOf(await update({ ...statement, parameters }, calls, { heldBy, database }, sql));
    }
    default:
      throw new LanceError("InvalidInput", `DoPut does not take the command ${command.$typeName}`);
  }
}

/** Writes the rows to the table of a command, and returns their number. */
async function ingest(
  command: CommandStatementIngest,
  start: PutStart,
  calls: PipelineCalls,
  signal: AbortSignal,
): Promise<bigint> {
  refuseTransaction(command);
  const { table, schema, catalog = "", temporary, options } = command;
  if (temporary) throw new LanceError("Unsupported", "temporary tables are not served");
  const [unknown] = Object.keys(options);
  if (unknown !== undefined)
    throw new LanceError("InvalidInput", `the ingest has the unknown option ${JSON.stringify(unknown)}`);
  if (table === "") throw new LanceError("InvalidInput", "the ingest names no table");
  if (catalog !== "" && catalog !== catalogOf(calls.headers))
    throw new LanceError("Unsupported", `the catalog ${JSON.stringify(catalog)} cannot be named here`);
  const id = [...(schema ? namespaceOf(schema) : calls.namespacePath), table];
  const { method, mode } = await writeOf(command, id, calls);
  const data = create(HttpBodySchema, { contentType: ARROW_STREAM });
  const request = create(method.input, { id, mode, data } as never) as Message;
  let count = 0n;
  const passed = (message: FlightData) => {
    count += BigInt(rowsIn(message));
  };
  await calls.upload(method, request as never, streamOf(start, signal, passed), { ownsBody: true });
  return count;
}

/** Returns the operation that an ingest is. Where the table may or may not exist, it looks first; the write fails if another call creates or drops the table after that. */
async function writeOf(
  { tableDefinitionOptions }: CommandStatementIngest,
  id: string[],
  calls: PipelineCalls,
): Promise<Write> {
  const { ifNotExist = Missing.UNSPECIFIED, ifExists } = tableDefinitionOptions ?? {};
  const creates = ifNotExist === Missing.CREATE;
  if (creates || ifNotExist === Missing.FAIL) {
    if (ifExists === Existing.FAIL && creates) return { method: createTable, mode: CreateTableMode.CREATE };
    if (ifExists === Existing.APPEND) {
      const isNew = creates && !(await exists(id, calls));
      if (isNew) return { method: createTable, mode: CreateTableMode.CREATE };
      return { method: insertIntoTable, mode: InsertMode.APPEND };
    }
    if (ifExists === Existing.REPLACE) {
      if (!creates) await calls.unary(describeTable, { id });
      return { method: createTable, mode: CreateTableMode.OVERWRITE };
    }
  }
  throw new LanceError("InvalidInput", "the ingest must say what happens with and without a table");
}

async function exists(id: string[], calls: PipelineCalls): Promise<boolean> {
  try {
    await calls.unary(describeTable, { id });
    return true;
  } catch (thrown) {
    if (isLanceError(thrown, "TableNotFound")) return false;
    throw thrown;
  }
}

/** Runs a statement that changes rows, and returns their number. */
async function update(
  statement: Statement,
  calls: PipelineCalls,
  presented: Presented,
  sql: FlightSqlOptions | undefined,
): Promise<bigint> {
  const caller = await sqlCallerOf(calls, presented);
  const described = await servedSql(sql).runner.describe(statement, caller);
  if (!described.isUpdate)
    throw new LanceError(
      "InvalidInput",
      "the statement changes nothing; a query is read by GetFlightInfo and DoGet",
    );
  const messages: Uint8Array[] = [];
  for await (const message of described.run(caller, statement.parameters)) messages.push(message);
  const { tableFromIPC } = await import("apache-arrow");
  return tableFromIPC(Buffer.concat(messages)).get(0)?.["Count"] as bigint;
}

function countOf(recordCount: bigint): PutResult {
  const result = create(DoPutUpdateResultSchema, { recordCount });
  return create(PutResultSchema, { appMetadata: toBinary(DoPutUpdateResultSchema, result) });
}

/** Parameters of a statement. */
interface Parameters {
  readonly columns: number;
  readonly rows: number;
  readonly stream: Uint8Array;
}

/** Reads the stream of a statement's parameters. */
export async function readParameters(
  start: PutStart,
  signal: AbortSignal,
  maxBytes: number,
): Promise<Parameters> {
  const [schema] = start.head;
  if (schema === undefined) return { columns: 0, rows: 0, stream: new Uint8Array() };
  const parts: Uint8Array[] = [];
  let [rows, length] = [0, 0];
  const passed = (message: FlightData) => {
    rows += rowsIn(message);
  };
  for await (const part of streamOf(start, signal, passed)) {
    length += part.byteLength;
    if (length > maxBytes)
      throw new LanceError("PayloadTooLarge", `parameters have more than ${maxBytes} bytes`);
    parts.push(part);
  }
  const columns = decodeSchema(schema.dataHeader).fields.length;
  return { columns, rows, stream: Buffer.concat(parts) };
}
