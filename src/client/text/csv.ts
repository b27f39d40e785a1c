import type { RecordBatch, Schema } from "apache-arrow";
import Papa from "papaparse";
import { toIpcStream } from "../arrow-input.ts";
import { vectorOf } from "../fitting.ts";
import { arrowType, type CsvColumn, createTypeGuess, parseValue, type TypeGuess } from "./csv-types.ts";

type Arrow = typeof import("apache-arrow");
type Rows = readonly (readonly string[])[];

/** Bytes of a file that are parsed at a time. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Converts a CSV file, whose first line names its columns, to an Arrow IPC stream. It reads the file twice: all values
 * of a column decide about its type.
 *
 * @param onProgress called with the part that is done, from 0 to 1.
 * @throws Error for a file that is not CSV.
 */
export async function* csvToArrow(file: File, onProgress: (part: number) => void): AsyncIterable<Uint8Array> {
  let guess: TypeGuess | undefined;
  let hasRows = false;
  for await (const rows of rowsOf(file, (part) => onProgress(part / 2))) {
    guess ??= createTypeGuess(namesOf(rows.names));
    hasRows ||= rows.rows.length > 0;
    for (const row of rows.rows) guess.add(row);
  }
  if (guess === undefined) throw new Error("the file is empty");
  const columns = guess.columns();
  const arrow = await import("apache-arrow");
  const schema = new arrow.Schema(
    columns.map((column) => new arrow.Field(column.name, arrowType(arrow, column), true)),
  );
  async function* batches(): AsyncIterable<RecordBatch> {
    for await (const { rows } of rowsOf(file, (part) => onProgress((1 + part) / 2))) {
      if (rows.length > 0) yield batchOf(arrow, schema, columns, rows);
    }
  }
  yield* toIpcStream(hasRows ? batches() : new arrow.Table(schema));
}

function batchOf(arrow: Arrow, schema: Schema, columns: readonly CsvColumn[], rows: Rows): RecordBatch {
  const vectors = columns.map((column, at) => {
    const values = rows.map((row) => parseValue(column, row[at]));
    return vectorOf(arrow, values, arrowType(arrow, column));
  });
  const struct = arrow.makeData({
    type: new arrow.Struct(schema.fields),
    length: rows.length,
    nullCount: 0,
    children: vectors.map((vector) => vector.data[0] as never),
  });
  return new arrow.RecordBatch(schema, struct);
}

/** Returns names for columns, also where the file has none, or a name twice. */
function namesOf(names: readonly string[]): readonly string[] {
  const used = new Map<string, number>();
  return names.map((text, at) => {
    const name = text.trim() || `column_${at + 1}`;
    const before = used.get(name) ?? 0;
    used.set(name, before + 1);
    return before === 0 ? name : `${name}_${before + 1}`;
  });
}

/** Yields the rows of a file chunk by chunk, with the first line as names. */
async function* rowsOf(file: File, onProgress: (part: number) => void) {
  let names: readonly string[] | undefined;
  for await (const { rows, cursor } of chunksOf(file)) {
    const isFirst = names === undefined;
    names ??= rows[0];
    if (names !== undefined) yield { names, rows: isFirst ? rows.slice(1) : rows };
    onProgress(file.size === 0 ? 1 : cursor / file.size);
  }
}

interface Chunk {
  readonly rows: Rows;
  /** Characters that are parsed. */
  readonly cursor: number;
}

/** Makes an iteration of the calls of the library, which waits until a chunk is used. */
async function* chunksOf(file: File): AsyncIterable<Chunk> {
  const chunks = new TransformStream<Chunk, Chunk>();
  const writer = chunks.writable.getWriter();
  Papa.parse<string[]>(file, {
    chunkSize: CHUNK_BYTES,
    skipEmptyLines: "greedy",
    chunk({ data, errors, meta }, parser) {
      const [error] = errors.filter(({ type }) => type === "Quotes");
      if (error !== undefined) {
        parser.abort();
        void writer.abort(new Error(`row ${(error.row ?? 0) + 1}: ${error.message}`)).catch(() => {});
        return;
      }
      parser.pause();
      writer.write({ rows: data, cursor: meta.cursor }).then(
        () => parser.resume(),
        () => parser.abort(),
      );
    },
    complete: () => void writer.close().catch(() => {}),
    error: (error) => void writer.abort(error).catch(() => {}),
  });
  const reader = chunks.readable.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}
