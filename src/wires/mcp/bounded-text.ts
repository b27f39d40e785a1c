import { textOfJson } from "../../arrow/rows/json-text.ts";
import { createTextReader } from "../../arrow/rows/row-texts.ts";
import type { QueryResult } from "../../client/rows/query-result.ts";

/** Longest list of rows or names in a result, in bytes of UTF-8: a model reads every one of them. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** Longest vector that a row has without being asked for. */
const SHORT_VECTOR = 8;

/** How the rows of a query are returned. */
export interface RowsOptions {
  /** Columns that the model asked for; long vectors among them are returned. Default: all others. */
  readonly columns?: readonly string[] | undefined;
  readonly limit: number;
  readonly offset: number;
  /** Whether the result may have more rows than the limit, which are left out, and no page begins at an offset. Default: false. */
  readonly isCut?: boolean;
}

/** Returns the rows of a query as JSON, as far as they fit, and reads no further. */
export async function rowsText(
  result: QueryResult,
  { columns, limit, offset, isCut = false }: RowsOptions,
): Promise<string> {
  const arrow = await import("apache-arrow");
  const read = createTextReader(arrow);
  const list = createBoundedList();
  let omitted: readonly string[] = [];
  let hasMore = false;
  reading: for await (const batch of result) {
    omitted = batch.schema.fields
      .filter(({ type }) => arrow.DataType.isFixedSizeList(type) && type.listSize > SHORT_VECTOR)
      .map(({ name }) => String(name))
      .filter((name) => columns?.includes(name) !== true);
    const shown = batch.select(batch.schema.names.map(String).filter((name) => !omitted.includes(name)));
    for (const row of read(shown)) {
      hasMore = isCut && list.count === limit;
      if (hasMore || !list.add(textOfJson(row))) break reading;
    }
  }
  const notes: string[] = [];
  if (omitted.length > 0)
    notes.push(`left out long vectors: ${omitted.join(", ")}; name them in columns to get them`);
  if (list.isFull && isCut) notes.push(cutNote(list));
  else if (list.isFull) notes.push(cutNote(list, offset));
  else if (isCut) notes.push(...(hasMore ? [`cut after ${limit} rows; ask for fewer, or aggregate`] : []));
  else if (list.count === limit) notes.push(`there may be more rows; offset ${offset + limit} continues`);
  return objectText({ row_count: list.count, ...noteMember(notes) }, { rows: list });
}

/** @param offset Default: the result cannot be read from another row on. */
function cutNote({ count, refusedBytes }: BoundedList, offset?: number): string {
  if (count === 0)
    return `cut: the first row alone has ${refusedBytes} bytes, and a result has at most ${MAX_RESULT_BYTES}; ask for fewer columns`;
  const cut = `cut after ${count} rows, because a result has at most ${MAX_RESULT_BYTES} bytes; ask for fewer columns`;
  return offset === undefined ? `${cut} or rows` : `${cut}, or go on at offset ${offset + count}`;
}

/** Texts of JSON that are added until no more fit. */
export interface BoundedList {
  readonly items: readonly string[];
  readonly count: number;
  /** Whether an item did not fit. */
  readonly isFull: boolean;
  /** Size of the item that did not fit, in bytes. */
  readonly refusedBytes: number;
  /** Adds a text of JSON; returns false if it does not fit. */
  add(text: string): boolean;
}

/** Creates an empty list, bounded by {@link MAX_RESULT_BYTES}. */
export function createBoundedList(): BoundedList {
  const items: string[] = [];
  let bytes = 0;
  let refusedBytes = 0;
  return {
    items,
    get count() {
      return items.length;
    },
    get isFull() {
      return refusedBytes > 0;
    },
    get refusedBytes() {
      return refusedBytes;
    },
    add(text) {
      const size = Buffer.byteLength(text);
      if (bytes + size > MAX_RESULT_BYTES) {
        refusedBytes = size;
        return false;
      }
      bytes += size;
      items.push(text);
      return true;
    },
  };
}

/** Returns a list of the values that fit. */
export function boundedListOf(values: Iterable<unknown>): BoundedList {
  const list = createBoundedList();
  for (const value of values) if (!list.add(textOfJson(value))) break;
  return list;
}

/** Returns the member of a result that tells the model what it does not see. */
export function noteMember(notes: readonly string[]): { readonly note?: string } {
  return notes.length === 0 ? {} : { note: notes.join(". ") };
}

/** Returns an object as JSON: members on a line each, then lists with a line for each item. Members that are undefined are left out. */
export function objectText(
  members: Readonly<Record<string, unknown>>,
  lists: Readonly<Record<string, BoundedList>> = {},
): string {
  const lines = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}: ${textOfJson(value)}`);
  for (const [name, { items }] of Object.entries(lists))
    lines.push(`${JSON.stringify(name)}: ${items.length === 0 ? "[]" : `[\n${items.join(",\n")}\n]`}`);
  return `{\n${lines.join(",\n")}\n}`;
}
