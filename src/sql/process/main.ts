// The program of a process of the SQL engine. It runs a statement at a time for the gateway, which has checked it, and reads tables through the
// gateway alone. It has no credentials, no files and no network.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { KEPT_SCHEMA, SCAN_FUNCTION } from "../tree/tree.ts";
import type { ColumnReader } from "./column-reader.ts";
import type { ProcessBounds, Reply, Request, StatementTables } from "./messages.ts";
import { holdFrame, readFrame, writeFrame, writeHeld } from "./messages.ts";
import { bindParameters } from "./parameters.ts";
import { columnReader } from "./read-vectors.ts";
import { keepTable, registerScans, setTables } from "./scans.ts";

/** Rows and bytes after which a batch of a result is complete. */
const BATCH_ROWS = 16_384;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Asks for the memory of the tables that are kept, which are all that the database has. */
const KEPT_BYTES =
  "SELECT sum(memory_usage_bytes)::BIGINT::VARCHAR FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'";

const { memoryMib, keptMib, threads } = JSON.parse(process.argv[2] ?? "{}") as ProcessBounds;
const connection = await openDatabase();
/** Encodes a result, one message of a stream at a time. */
interface ResultEncoder {
  readonly schema: arrow.Schema;
  /** Message of the schema. */
  readonly head: Uint8Array;
  /** Returns the message of a batch. */
  encode(batch: arrow.RecordBatch): Uint8Array;
}

/** A statement that is bound. */
interface Bound extends StatementTables {
  readonly statement: duckdb.PreparedStatement;
  /** Encodes each of its results. Default: parameters decide about the types. */
  readonly encoder: ResultEncoder | undefined;
}

/** Statements that are bound, by their ids. */
const bound = new Map<number, Bound>();
/** Statements that call a function of one text, by its name. */
const calls = new Map<string, duckdb.PreparedStatement>();

for (;;) {
  const frame = readFrame<Request>();
  if (frame === undefined) break;
  try {
    await answer(frame.header, frame.body);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const isMemory = /Out of Memory/i.test(message);
    reply({ kind: "error", message, ...(isMemory && { bound: "memory" as const }) });
  }
}
process.exit(0);

async function openDatabase(): Promise<duckdb.Connection> {
  const config = duckdb.create_config();
  const settings = {
    memory_limit: `${memoryMib + keptMib}MiB`,
    threads: String(threads),
    temp_directory: "",
    max_temp_directory_size: "0B",
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    allow_community_extensions: "false",
    allow_unsigned_extensions: "false",
    enable_external_access: "false",
  };
  for (const [name, value] of Object.entries(settings)) duckdb.set_config(config, name, value);
  const opened = await duckdb.connect(await duckdb.open(":memory:", config));
  registerScans(opened);
  await duckdb.query(opened, "SET errors_as_json = true");
  await duckdb.query(opened, "SET TimeZone = 'UTC'");
  await duckdb.query(opened, `CREATE SCHEMA ${KEPT_SCHEMA}`);
  await duckdb.query(opened, "SET lock_configuration = true");
  return opened;
}

async function answer(request: Request, body: Uint8Array): Promise<void> {
  switch (request.kind) {
    case "parse":
      reply({ kind: "done" }, await call("json_serialize_sql", body));
      break;
    case "write": {
      const text = await call("json_deserialize_sql", body);
      replyInParts(text, await call("json_serialize_sql", text));
      break;
    }
    case "bind": {
      const { id, tables, places, forgotten } = request;
      if (forgotten !== undefined) release(forgotten);
      setTables({ tables, places });
      const statement = await duckdb.prepare(connection, Buffer.from(body).toString());
      const result = createResultEncoder(resultSchema(statement));
      const encoder = duckdb.nparams(statement) === 0 ? result : undefined;
      bound.set(id, { statement, tables, places, encoder });
      replyInParts(result.head, createResultEncoder(parameterSchema(statement)).head);
      break;
    }
    case "keep": {
      const { name, table } = request;
      setTables({ tables: [table], places: [0] });
      const query = (statement: string) => duckdb.query(connection, statement);
      await keepTable(query, `${KEPT_SCHEMA}.${name}`, `FROM ${SCAN_FUNCTION}(0)`);
      reply({ kind: "done" }, await keptBytes());
      break;
    }
    case "drop":
      for (const name of request.names) await duckdb.query(connection, `DROP TABLE ${KEPT_SCHEMA}.${name}`);
      reply({ kind: "done" }, await keptBytes());
      break;
    case "run":
      await run(request.id, body, request.maxRows);
      break;
  }
}

function release(id: number): void {
  const known = bound.get(id);
  if (known !== undefined) duckdb.destroy_prepare_sync(known.statement);
  bound.delete(id);
}

function replyInParts(first: Uint8Array, second: Uint8Array): void {
  reply({ kind: "done", firstBytes: first.byteLength }, Buffer.concat([first, second]));
}

function reply(header: Reply, body?: Uint8Array): void {
  writeFrame(header, body);
}

/** Calls a function of one text. */
async function call(name: string, argument: Uint8Array): Promise<Uint8Array> {
  const statement =
    calls.get(name) ?? (await duckdb.prepare(connection, `SELECT ${name}($1::VARCHAR)::VARCHAR`));
  calls.set(name, statement);
  duckdb.bind_varchar(statement, 1, Buffer.from(argument).toString());
  return textIn(await duckdb.execute_prepared(statement));
}

/** Returns the memory of the tables that are kept, in bytes as text. */
async function keptBytes(): Promise<Uint8Array> {
  return textIn(await duckdb.query(connection, KEPT_BYTES));
}

/** Returns the only text of a result. */
async function textIn(result: duckdb.Result): Promise<Uint8Array> {
  const chunk = await duckdb.fetch_chunk(result);
  const reader = columnReader("text", duckdb.column_logical_type(result, 0));
  if (chunk !== null) reader.append(reader.open(duckdb.data_chunk_get_vector(chunk, 0), 1), 0, 1);
  return reader.finish().values as Uint8Array;
}

function resultSchema(statement: duckdb.PreparedStatement): arrow.Schema {
  const count = duckdb.prepared_statement_column_count(statement);
  return new arrow.Schema(
    Array.from({ length: count }, (_, i) => {
      const name = duckdb.prepared_statement_column_name(statement, i);
      return new arrow.Field(
        name,
        columnReader(name, duckdb.prepared_statement_column_logical_type(statement, i)).type,
        true,
      );
    }),
  );
}

function parameterSchema(statement: duckdb.PreparedStatement): arrow.Schema {
  return new arrow.Schema(
    Array.from({ length: duckdb.nparams(statement) }, (_, i) => {
      const name = duckdb.parameter_name(statement, i + 1);
      return new arrow.Field(name, parameterType(statement, i + 1), true);
    }),
  );
}

/** Returns the type of a parameter; null if the statement takes any. */
function parameterType(statement: duckdb.PreparedStatement, index: number): arrow.DataType {
  if (duckdb.param_type(statement, index) === duckdb.Type.INVALID) return new arrow.Null();
  return columnReader(String(index), duckdb.param_logical_type(statement, index)).type;
}

function createResultEncoder(schema: arrow.Schema): ResultEncoder {
  let pieces: Uint8Array[] = [];
  class Sink extends arrow.AsyncByteQueue<Uint8Array> {
    override write(piece: Uint8Array): void {
      pieces.push(piece);
    }
  }
  const sink = new Sink();
  const writer = new arrow.RecordBatchStreamWriter();
  writer.reset(sink, schema);
  const head = Buffer.concat(pieces);
  return {
    schema,
    head,
    encode(batch) {
      // The writer notes the place of each batch for the footer of a file, forgets them here, and begins with the schema again.
      writer.reset(sink);
      pieces = [];
      writer.write(batch);
      return Buffer.concat(pieces).subarray(head.byteLength);
    },
  };
}

async function run(id: number, parameters: Uint8Array, maxRows = Number.POSITIVE_INFINITY): Promise<void> {
  const known = bound.get(id);
  if (known === undefined) throw new Error("the statement is not bound");
  setTables(known);
  bindParameters(known.statement, parameters);
  const result = await duckdb.execute_prepared_streaming(known.statement);
  const names = Array.from({ length: duckdb.column_count(result) }, (_, i) => duckdb.column_name(result, i));
  const readers = names.map((name, i) => columnReader(name, duckdb.column_logical_type(result, i)));
  const encoder = known.encoder ?? createResultEncoder(schemaOf(names, readers));
  holdFrame({ kind: "message" } satisfies Reply, encoder.head);
  let [rows, all, enough, isBatchHeld] = [0, 0, 1, false];
  for (;;) {
    const chunk = await duckdb.fetch_chunk(result);
    const count = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
    all += count;
    if (isBatchHeld && count > 0) writeHeld();
    if (all > maxRows) {
      reply({ kind: "error", message: `the result has more than ${maxRows} rows`, bound: "rows" });
      return;
    }
    if (count > 0) append(readers, chunk as duckdb.DataChunk, count);
    rows += count;
    if (rows > 0 && (count === 0 || rows >= enough)) {
      const message = encoder.encode(batchOf(encoder.schema, readers, rows));
      holdFrame({ kind: "message" } satisfies Reply, message);
      isBatchHeld = true;
      enough = Math.min(BATCH_ROWS, Math.ceil((BATCH_BYTES * rows) / message.byteLength));
      rows = 0;
    }
    if (count === 0) break;
  }
  reply({ kind: "done" });
}

function schemaOf(names: readonly string[], readers: readonly ColumnReader[]): arrow.Schema {
  return new arrow.Schema(readers.map(({ type }, i) => new arrow.Field(names[i] as string, type, true)));
}

function append(readers: readonly ColumnReader[], chunk: duckdb.DataChunk, count: number): void {
  for (const [i, reader] of readers.entries())
    reader.append(reader.open(duckdb.data_chunk_get_vector(chunk, i), count), 0, count);
}

function batchOf(schema: arrow.Schema, readers: readonly ColumnReader[], length: number): arrow.RecordBatch {
  const children = readers.map((reader) => reader.finish());
  const type = new arrow.Struct(schema.fields);
  return new arrow.RecordBatch(schema, arrow.makeData({ type, length, nullCount: 0, children }));
}
