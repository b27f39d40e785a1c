import { readBatches } from "./read-batches.ts";
import { createTextReader, textOfValue } from "./row-texts.ts";

const ENCODER = new TextEncoder();

/** Rows whose text is in memory at a time. */
const SLICE_ROWS = 256;

/** Texts in names that readers could take for separators, or leave out. */
const ODD_NAME = /[\t,;|"\r\n\ufeff]|^\s|\s$|^$/;

/**
 * Converts an Arrow IPC stream to CSV with a line of names; an empty text is quoted, and null is not.
 *
 * @param separator text between the values of a row. Default: a comma
 */
export async function* toCsv(answer: AsyncIterable<Uint8Array>, separator = ","): AsyncIterable<Uint8Array> {
  const line = (cells: readonly string[]) => `${cells.join(separator)}\n`;
  let isFirst = true;
  for await (const { names, rows } of slicesOf(answer)) {
    if (isFirst) yield ENCODER.encode(line(names.map((name) => (ODD_NAME.test(name) ? quoted(name) : name))));
    isFirst = false;
    const lines = rows.map((row) => line(names.map((name) => cellOf(row[name], separator))));
    if (lines.length > 0) yield ENCODER.encode(lines.join(""));
  }
}

/** Characters that a cell has in quotes alone; other programs also remove spaces at its ends. */
const ODD_CELL = /["\r\n\ufeff]|^\s|\s$|^$/;

function cellOf(value: unknown, separator: string): string {
  if (value === null) return "";
  const text = textOfValue(value);
  return text.includes(separator) || ODD_CELL.test(text) ? quoted(text) : text;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** Some rows of a result. */
export interface RowSlice {
  readonly names: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** Yields the rows of an Arrow IPC stream in slices; a stream without rows has a slice without rows. */
export async function* slicesOf(answer: AsyncIterable<Uint8Array>): AsyncIterable<RowSlice> {
  const read = createTextReader(await import("apache-arrow"));
  let isFirst = true;
  for await (const batch of readBatches(answer)) {
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
