import stringWidth from "string-width";
import { forTerminal, itemJson } from "../terminal/terminal-text.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Formats bytes for people: `512 B`, `3.4 MiB`. */
export function sizeText(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}`;
}

/** Formats a time in milliseconds since 1970 in ISO 8601; a time that no calendar has stays a number. */
export function isoTime(millis: number): string {
  const date = new Date(millis);
  return Number.isNaN(date.getTime()) ? String(millis) : date.toISOString();
}

/** Formats a time in ISO 8601 for people: `2026-05-04 13:02:01 UTC`. */
export function timeText(iso = ""): string {
  return iso.replace(/T(.*?)(?:\.\d+)?Z$/, " $1 UTC");
}

const GAP = "  ";
/** Number of columns to which a terminal's width narrows a column at most. */
const NARROWEST = 8;

/** Returns the width of the terminal, if standard output is one. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}

/** Whether the columns of a table, cut as far as they stay readable, fit into a line of the terminal; elsewhere they do. */
export function fitsWidth(columns: number): boolean {
  return columns * (NARROWEST + GAP.length) - GAP.length <= (terminalWidth() ?? Number.POSITIVE_INFINITY);
}

/**
 * Formats rows in columns, two spaces apart; the first row has the headings. Control characters become spaces.
 *
 * @param columns width to which the widest columns are cut. Default: that of the terminal; elsewhere nothing is cut.
 */
export function textTable(rows: readonly (readonly string[])[], columns = terminalWidth()): string {
  return createTableFormat(rows, columns)(rows);
}

/** Returns a format for the rows of a long table; its first rows decide about the widths of its columns. */
function createTableFormat(
  first: readonly (readonly string[])[],
  columns = terminalWidth(),
): (rows: readonly (readonly string[])[]) => string {
  const widths = (first[0] ?? []).map((_, column) =>
    first.reduce((width, row) => Math.max(width, stringWidth(cleaned(row[column] ?? ""))), 0),
  );
  if (columns !== undefined) narrow(widths, columns);
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => fitted(cleaned(cell), widths[column] ?? 0))
      .join(GAP)
      .trimEnd();
  return (rows) => rows.map((row) => `${line(row)}\n`).join("");
}

/** Replaces control characters and line breaks, which would move other cells. */
export function cleaned(cell: string): string {
  return forTerminal(cell).replaceAll(/[\n\t]/g, " ");
}

/** Formats facts, a line for each that is known. */
export function factTable(facts: Readonly<Record<string, string | number | bigint | undefined>>): string {
  const rows = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]],
  );
  return textTable(rows);
}

/** Narrows the widest columns until a line fits, as far as a column stays readable. */
function narrow(widths: number[], columns: number): void {
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - columns;
  while (excess > 0) {
    const widest = Math.max(...widths);
    if (widest <= NARROWEST) return;
    const next = Math.max(NARROWEST, ...widths.filter((width) => width < widest));
    const at = widths.lastIndexOf(widest);
    const cut = Math.min(excess, Math.max(1, widest - next));
    widths[at] = widest - cut;
    excess -= cut;
  }
}

/** Pads or cuts a cell. */
function fitted(cell: string, width: number): string {
  const own = stringWidth(cell);
  if (own <= width) return cell + " ".repeat(width - own);
  let text = "";
  let used = 1;
  for (const { segment } of SEGMENTER.segment(cell)) {
    used += stringWidth(segment);
    if (used > width) break;
    text += segment;
  }
  return `${text}…${" ".repeat(width - stringWidth(text) - 1)}`;
}

const SEGMENTER = new Intl.Segmenter();

/** Number of rows that decide about the widths of columns. */
const WIDTH_ROWS = 1_000;

/** Yields the text of a long table as its rows arrive; its first rows decide about the widths of its columns. */
export async function* tableLines(
  rows: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
): AsyncIterable<string> {
  let format: ((rows: readonly (readonly string[])[]) => string) | undefined;
  let held: (readonly string[])[] = [];
  for await (const row of rows) {
    held.push(row);
    if (held.length <= WIDTH_ROWS) continue;
    format ??= createTableFormat(held);
    yield format(held);
    held = [];
  }
  if (held.length > 0) yield (format ?? createTableFormat(held))(held);
}

/** How a list of items is shown. */
export interface ListForm<T> {
  readonly headings: readonly string[];
  row(item: T): readonly string[];
  /** Returns what JSON has of an item. Default: the item itself. */
  facts?(item: T): unknown;
}

/** Yields a list as its items arrive: as JSON, with a line for each item, or as a table, of which an empty list has none. */
export async function* listText<T>(
  items: AsyncIterable<T>,
  json: boolean,
  { headings, row, facts = (item) => item }: ListForm<T>,
): AsyncIterable<string> {
  let isFirst = true;
  if (json) {
    for await (const item of items) {
      yield `${isFirst ? "[" : ","}\n  ${itemJson(facts(item))}`;
      isFirst = false;
    }
    yield isFirst ? "[]\n" : "\n]\n";
    return;
  }
  async function* rows(): AsyncIterable<readonly string[]> {
    for await (const item of items) {
      if (isFirst) yield headings;
      isFirst = false;
      yield row(item);
    }
  }
  for await (const text of tableLines(rows())) yield forTerminal(text);
}
