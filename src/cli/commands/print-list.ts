import { forTerminal, itemJson } from "../terminal/terminal-text.ts";
import { createTableFormat } from "./text-table.ts";

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
