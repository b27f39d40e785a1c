// The table function by which DuckDB reads the tables of a statement. Its functions run while a thread of DuckDB waits, so they wait themselves.
import duckdb from "@duckdb/node-bindings";
import { type RecordBatch, RecordBatchReader } from "apache-arrow";
import type { SqlType } from "../column-types.ts";
import { SCAN_FUNCTION } from "../tree/tree.ts";
import type { ScannedTable, ScanReply, ScanRequest, StatementTables } from "./messages.ts";
import { readFrame, writeFrame } from "./messages.ts";
import { vectorWriter, type WriteVector } from "./write-vectors.ts";

/** A scan under way. */
interface Scan {
  readonly batches: Iterator<RecordBatch>;
  /** Names of the columns, and what writes each. */
  readonly columns: readonly string[];
  readonly writers: readonly WriteVector[];
  batch: RecordBatch | undefined;
  /** Rows of the batch that are passed. */
  passed: number;
}

/** Rows of a chunk of DuckDB. */
const CHUNK_ROWS = duckdb.vector_size();

/** Tables of the statement that the process works on. */
let current: StatementTables = { tables: [], places: [] };
let scans = 0;

/** Sets the tables of the statement that is bound or run next. */
export function setTables(next: StatementTables): void {
  current = next;
}

/** Registers the table function on a connection. */
export function registerScans(connection: duckdb.Connection): void {
  const scanFunction = duckdb.create_table_function();
  duckdb.table_function_set_name(scanFunction, SCAN_FUNCTION);
  duckdb.table_function_add_parameter(scanFunction, duckdb.create_logical_type(duckdb.Type.BIGINT));
  duckdb.table_function_supports_projection_pushdown(scanFunction, true);
  duckdb.table_function_set_bind(scanFunction, (info) =>
    reporting(
      (text) => duckdb.bind_set_error(info, text),
      () => bind(info),
    ),
  );
  duckdb.table_function_set_init(scanFunction, (info) =>
    reporting(
      (text) => duckdb.init_set_error(info, text),
      () => init(info),
    ),
  );
  duckdb.table_function_set_function(scanFunction, (info, chunk) =>
    reporting(
      (text) => duckdb.function_set_error(info, text),
      () => fill(info, chunk),
    ),
  );
  duckdb.register_table_function(connection, scanFunction);
}

function reporting(report: (text: string) => void, work: () => void): void {
  try {
    work();
  } catch (thrown) {
    report(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function bind(info: duckdb.TableFunctionBindInfo): void {
  const place = Number(duckdb.get_int64(duckdb.bind_get_parameter(info, 0)));
  const { columns, rows } = tableAt(place);
  for (const { name, type } of columns) duckdb.bind_add_result_column(info, name, logicalType(type));
  // An estimate: a plan outlives the number of rows that it was made for.
  if (rows !== undefined) duckdb.bind_set_cardinality(info, rows, false);
  duckdb.bind_set_bind_data(info, { place });
}

function tableAt(place: number): ScannedTable {
  const table = current.tables[current.places[place] ?? -1];
  if (table === undefined) throw new Error("the statement has no such table");
  return table;
}

function init(info: duckdb.TableFunctionInitInfo): void {
  const { place } = duckdb.init_get_bind_data(info) as { readonly place: number };
  const { name, columns } = tableAt(place);
  const count = duckdb.init_get_column_count(info);
  const positions = Array.from({ length: count }, (_, i) => duckdb.init_get_column_index(info, i));
  const chosen = positions.flatMap((position) => columns[position] ?? []);
  if (chosen.length < count) throw new Error("rows of a table have no rowid in SQL");
  for (const { name: column, refused } of chosen)
    if (refused !== undefined)
      throw new Error(
        `column "${column}" of table "${name}" has the type ${refused}, which SQL does not read`,
      );
  const names = chosen.map((column) => column.name);
  const scan: Scan = {
    batches: openBatches(place, names),
    columns: names,
    writers: chosen.map(({ type }) => vectorWriter(type)),
    batch: undefined,
    passed: 0,
  };
  duckdb.init_set_max_threads(info, 1);
  duckdb.init_set_init_data(info, scan);
}

function fill(info: duckdb.TableFunctionInfo, chunk: duckdb.DataChunk): void {
  const scan = duckdb.function_get_init_data(info) as unknown as Scan;
  while (scan.batch === undefined || scan.passed === scan.batch.numRows) {
    const next = scan.batches.next();
    if (next.done) {
      duckdb.data_chunk_set_size(chunk, 0);
      return;
    }
    scan.batch = next.value;
    scan.passed = 0;
  }
  const { batch, passed, writers, columns } = scan;
  const count = Math.min(CHUNK_ROWS, batch.numRows - passed);
  duckdb.data_chunk_set_size(chunk, count);
  for (const [i, write] of writers.entries()) {
    // A search has its score besides the columns that were asked for.
    const data = batch.data.children[batch.schema.fields.findIndex(({ name }) => name === columns[i])];
    if (data === undefined || data.offset !== 0) throw new Error("a batch of the table is not as expected");
    write(duckdb.data_chunk_get_vector(chunk, i), data, passed, count);
  }
  scan.passed += count;
}

/** Asks the gateway for columns of a table, and returns its batches. */
function openBatches(place: number, columns: readonly string[]): Iterator<RecordBatch> {
  const scan = scans++;
  ask({ kind: "open", scan, place, columns });
  return RecordBatchReader.from(piecesOf(scan))[Symbol.iterator]();
}

function* piecesOf(scan: number): Generator<Uint8Array> {
  for (;;) {
    ask({ kind: "next", scan });
    const frame = readFrame<ScanReply>();
    switch (frame?.header.kind) {
      case "piece":
        yield frame.body;
        break;
      case "end":
        return;
      case "failed":
        throw new Error("a table cannot be read");
      default:
        process.exit(0);
    }
  }
}

function ask(request: ScanRequest): void {
  writeFrame(request);
}

/** Makes a type of DuckDB. */
function logicalType(type: SqlType): duckdb.LogicalType {
  switch (type.id) {
    case "DECIMAL":
      return duckdb.create_decimal_type(type.width, type.scale);
    case "LIST":
      return duckdb.create_list_type(logicalType(type.child));
    case "ARRAY":
      return duckdb.create_array_type(logicalType(type.child), type.size);
    case "MAP":
      return duckdb.create_map_type(logicalType(type.key), logicalType(type.value));
    case "STRUCT":
      return duckdb.create_struct_type(type.types.map(logicalType), type.names);
    default:
      return duckdb.create_logical_type(duckdb.Type[type.id]);
  }
}

/**
 * Creates a table that the process keeps, in its compressed form. A table whose compression fails is dropped again: nothing would use it
 * under its name, and it would take its memory until the process ends.
 *
 * @param query runs a statement
 * @param name full name of the table
 * @param rows what the table is made of, behind `AS`
 */
export async function keepTable(
  query: (statement: string) => Promise<unknown>,
  name: string,
  rows: string,
): Promise<void> {
  await query(`CREATE TABLE ${name} AS ${rows}`);
  try {
    // Compresses it.
    await query("CHECKPOINT");
  } catch (error) {
    await query(`DROP TABLE ${name}`);
    throw error;
  }
}
