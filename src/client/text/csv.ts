import type { RecordBatch } from "apache-arrow";
import Papa from "papaparse";
import { toIpcStream } from "../arrow-input.ts";
import { batchOf } from "../batches.ts";
import { arrowType, createTypeGuess, parseValue, type TypeGuess } from "./csv-types.ts";

export type Rows = readonly (readonly string[])[];

/** Bytes of a file that are parsed at a time. */
const CHUNK_BYTES = 1024 * 1024;
/** Number of the first row with values in errors; the names are in row 1. */
export const FIRST_ROW = 2;

/** Text of a CSV file: a file of a browser, or a stream of texts of Node. */
export type CsvText = File | NodeJS.ReadableStream;

/** Options of {@link csvToArrow}. */
export interface CsvOptions {
  /** Text between the cells of a row. Default: that of the line of names, see {@link rowsOf}. */
  readonly separator?: string | undefined;
  /** Called with the number of the pass, from 0, and the characters of it that are parsed, which are known for files. */
  onProgress?(pass: number, characters: number): void;
}

/**
 * Converts CSV, whose first line names its columns, to an Arrow IPC stream. It reads the text twice: all values of a column decide
 * about its type.
 *
 * @param open returns the text from its beginning.
 * @throws Error for text that is not CSV, and LanceError InvalidInput for times beyond those of their column's unit.
 */
export async function* csvToArrow(open: () => CsvText, options: CsvOptions = {}): AsyncIterable<Uint8Array> {
  const { separator, onProgress } = options;
  const pass = (number: number) =>
    rowsOf(open(), separator, (characters) => onProgress?.(number, characters));
  const arrow = await import("apache-arrow");
  let guess: TypeGuess | undefined;
  let hasRows = false;
  for await (const { names, rows } of pass(0)) {
    guess ??= createTypeGuess(namesOf(names));
    hasRows ||= rows.length > 0;
    for (const row of rows) guess.add(row);
  }
  if (guess === undefined) throw new Error("the file is empty");
  const columns = guess.columns();
  const guessed = new arrow.Schema(
    columns.map((column) => new arrow.Field(column.name, arrowType(arrow, column), true)),
  );
  async function* batches(): AsyncIterable<RecordBatch> {
    let next = FIRST_ROW;
    for await (const { rows } of pass(1)) {
      if (rows.length === 0) continue;
      const values = columns.map((column, at) => rows.map((row) => parseValue(column, row[at])));
      yield batchOf(arrow, guessed, values, next);
      next += rows.length;
    }
  }
  yield* toIpcStream(hasRows ? batches() : new arrow.Table(guessed));
}

/** Returns names for columns, also where the file has none, or a name twice. */
export function namesOf(names: readonly string[]): readonly string[] {
  const used = new Map<string, number>();
  return names.map((text, at) => {
    const name = text.trim() || `column_${at + 1}`;
    const before = used.get(name) ?? 0;
    used.set(name, before + 1);
    return before === 0 ? name : `${name}_${before + 1}`;
  });
}

/**
 * Yields the rows of a text chunk by chunk, with the first line as names. An empty line is a row without a value in a text with a
 * single column, and nothing elsewhere.
 *
 * @param separator text between the cells of a row. Default: a tab if the first line has one outside of quotes, or else a comma, a semicolon
 *   or a vertical bar, in this order
 */
export async function* rowsOf(
  text: CsvText,
  separator?: string,
  onProgress: (characters: number) => void = () => {},
) {
  let names: readonly string[] | undefined;
  let number = 0;
  for await (const { rows, cursor } of chunksOf(text, separator)) {
    const filled: (readonly string[])[] = [];
    for (const row of rows) {
      number += 1;
      if (isEmpty(row) && names?.length !== 1) continue;
      if (names !== undefined) filled.push(row);
      names ??= row;
      checkLength(row, names.length, number);
    }
    if (names !== undefined) yield { names, rows: filled };
    onProgress(cursor);
  }
}

/** Texts that may be between the cells of a row. */
const SEPARATORS = ["\t", ",", ";", "|"];

/** Only the names decide, because the cells are texts with any characters. */
function separatorOf(text: string): string {
  const [names = ""] = text.replaceAll(/"(?:[^"]|"")*"/g, "").split(/[\r\n]/, 1);
  return SEPARATORS.find((each) => names.includes(each)) ?? ",";
}

function isEmpty(row: readonly string[] | undefined): boolean {
  return row?.length === 1 && row[0] === "";
}

/** @throws Error for a row with values that no column would have */
function checkLength(row: readonly string[], columns: number, number: number): void {
  if (row.length <= columns || row.slice(columns).every((cell) => cell === "")) return;
  throw new Error(
    `row ${number} has ${row.length} cells, and the first line names ${columns}; texts with separators need quotes`,
  );
}

interface Chunk {
  readonly rows: Rows;
  /** Characters that are parsed. */
  readonly cursor: number;
}

/** Makes an iteration of the calls of the library, which waits until a chunk is used. */
async function* chunksOf(text: CsvText, separator: string | undefined): AsyncIterable<Chunk> {
  const chunks = new TransformStream<Chunk, Chunk>();
  const writer = chunks.writable.getWriter();
  let parsed = 0;
  let last: string[][] = [];
  Papa.parse<string[]>(text as File, {
    chunkSize: CHUNK_BYTES,
    delimiter: separator ?? separatorOf,
    chunk({ data, errors, meta }, parser) {
      const [error] = errors.filter(({ type }) => type === "Quotes");
      if (error !== undefined) {
        // The parser would complete, and so close, what it breaks off.
        void writer
          .abort(new Error(`row ${parsed + (error.row ?? 0) + 1}: ${error.message}`))
          .catch(() => {});
        parser.abort();
        return;
      }
      parser.pause();
      parsed += data.length;
      const rows = [...last, ...data];
      // The parser finds an empty row behind the newline at the end of a file; it finds none at the end of a stream.
      last = "size" in text && isEmpty(rows.at(-1)) ? rows.splice(-1) : [];
      writer.write({ rows, cursor: meta.cursor }).then(
        () => parser.resume(),
        () => parser.abort(),
      );
    },
    complete: () => void writer.close().catch(() => {}),
    error: (error) => void writer.abort(error).catch(() => {}),
  });
  const reader = chunks.readable.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    // The parser stops at the next chunk.
    void reader.cancel().catch(() => {});
  }
}
