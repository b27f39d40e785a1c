import type { IndexedRows } from "./rows/indexed-rows.ts";
import { compareBytes, compareKeys, parentEnd, type RowKey } from "./rows/row-key.ts";

/** Returns the ids of all rows below a namespace; `""` is the root. */
export function descendantsOf(rows: IndexedRows, objectId: string): IterableIterator<string> {
  return objectId === "" ? everything(rows) : below(rows, objectId);
}

function* everything({ store }: IndexedRows): IterableIterator<string> {
  for (const row of store.rows()) {
    const id = store.id(row);
    if (id !== "") yield id;
  }
}

/** Yields the ids below a namespace: its children, and rows whose parent's id begins with its own id and a `$`. */
function* below(rows: IndexedRows, objectId: string): IterableIterator<string> {
  const own = Buffer.from(objectId);
  yield* withParent(rows, own, (key) => parentEnd(key) - key.start === own.byteLength);
  yield* withParent(rows, Buffer.from(`${objectId}$`), () => true);
}

/** Yields the ids of the rows from a parent on, as long as their parents begin with its id and meet a condition. */
function* withParent(
  rows: IndexedRows,
  prefix: Buffer,
  isMeant: (key: RowKey) => boolean,
): IterableIterator<string> {
  const length = prefix.byteLength;
  // An empty name after the prefix: the place before all of its children.
  const place = {
    bytes: Buffer.concat([prefix, Buffer.from("$")]),
    start: 0,
    end: length + 1,
    nameStart: length + 1,
    kind: -1,
  };
  for (const row of rows.from((key) => compareKeys(key, place) < 0)) {
    const key = rows.key(row);
    if (parentEnd(key) - key.start < length || !isMeant(key)) return;
    if (compareBytes(key.bytes, key.start, key.start + length, prefix, 0, length) !== 0) return;
    yield rows.store.id(row);
  }
}
