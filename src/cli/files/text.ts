import Papa from "papaparse";
import { createQueryResult } from "../../client/query-result.ts";
import { jsonOfValue } from "../../client/text/json-of-value.ts";
import { createTextReader, type Digits } from "./values.ts";

/** Rows whose text is in memory at a time. */
const SLICE_ROWS = 256;

/** Returns a value as text: a text as it is, and everything else as JSON. */
export function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : jsonOfValue(value);
}

/** Converts an Arrow IPC stream to a JSON object in each line. */
export async function* toJsonLines(answer: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const { rows } of slicesOf(answer))
    yield Buffer.from(rows.map((row) => `${jsonOfValue(row)}\n`).join(""));
}

/** Texts in names that readers could take for separators. */
const SEPARATORS = /[\t,;|]/;

/**
 * Converts an Arrow IPC stream to CSV with a line of names; an empty text is quoted, and null is not.
 *
 * @param separator text between the values of a row. Default: a comma
 */
export async function* toCsv(answer: AsyncIterable<Uint8Array>, separator = ","): AsyncIterable<Uint8Array> {
  const text = (lines: readonly (readonly (string | null)[])[], isQuoted = isEmpty) =>
    Papa.unparse(lines as (string | null)[][], { delimiter: separator, newline: "\n", quotes: isQuoted });
  let isFirst = true;
  for await (const { names, rows } of slicesOf(answer)) {
    if (isFirst)
      yield Buffer.from(`${text([names], (name) => isEmpty(name) || SEPARATORS.test(String(name)))}\n`);
    isFirst = false;
    const lines = rows.map((row) =>
      names.map((name) => (row[name] === null ? null : textOfValue(row[name]))),
    );
    if (lines.length > 0) yield Buffer.from(`${text(lines)}\n`);
  }
}

const isEmpty = (value: unknown): boolean => value === "";

/** Some rows of a result. */
export interface RowSlice {
  readonly names: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown | Digits>>[];
}

/** Yields the rows of an Arrow IPC stream in slices; a stream without rows has a slice without rows. */
export async function* slicesOf(answer: AsyncIterable<Uint8Array>): AsyncIterable<RowSlice> {
  const read = await createTextReader();
  let isFirst = true;
  for await (const batch of createQueryResult(() => answer)) {
    const names = batch.schema.names.map(String);
    if (isFirst) yield { names, rows: [] };
    isFirst = false;
    let rows: Record<string, unknown>[] = [];
    for (const row of read(batch)) {
      rows.push(row);
      if (rows.length < SLICE_ROWS) continue;
      yield { names, rows };
      rows = [];
    }
    if (rows.length > 0) yield { names, rows };
  }
}
