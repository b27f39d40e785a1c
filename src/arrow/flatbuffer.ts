/**
 * Reads FlatBuffers tables in place.
 *
 * Arrow's metadata is small, and only a few fields of it matter here; reading them directly keeps any type
 * that this code does not know intact, and needs none of the generated classes. A reader past the end throws
 * RangeError, because every access goes through the DataView.
 */
export interface FlatTable {
  readonly view: DataView;
  /** Where the table begins in the view. */
  readonly at: number;
}

/** The root table of a buffer. */
export function rootTable(bytes: Uint8Array): FlatTable {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { view, at: view.getUint32(0, true) };
}

/** Where a field of a table is, or undefined when it has its default. */
function slot({ view, at }: FlatTable, index: number): number | undefined {
  const vtable = at - view.getInt32(at, true);
  const entry = 4 + index * 2;
  if (entry >= view.getUint16(vtable, true)) return undefined;
  const offset = view.getUint16(vtable + entry, true);
  return offset === 0 ? undefined : at + offset;
}

export function readUint8(table: FlatTable, index: number, fallback = 0): number {
  const at = slot(table, index);
  return at === undefined ? fallback : table.view.getUint8(at);
}

export function readInt16(table: FlatTable, index: number, fallback = 0): number {
  const at = slot(table, index);
  return at === undefined ? fallback : table.view.getInt16(at, true);
}

export function readInt32(table: FlatTable, index: number, fallback = 0): number {
  const at = slot(table, index);
  return at === undefined ? fallback : table.view.getInt32(at, true);
}

export function readInt64(table: FlatTable, index: number): bigint {
  const at = slot(table, index);
  return at === undefined ? 0n : table.view.getBigInt64(at, true);
}

/** Overwrites a number in place. @throws RangeError, when the table leaves it at its default. */
export function writeInt64(table: FlatTable, index: number, value: bigint): void {
  const at = slot(table, index);
  if (at === undefined) throw new RangeError(`field ${index} has no place to write to`);
  table.view.setBigInt64(at, value, true);
}

export function readTable(table: FlatTable, index: number): FlatTable | undefined {
  const at = slot(table, index);
  return at === undefined ? undefined : { view: table.view, at: at + table.view.getUint32(at, true) };
}

export function readString(table: FlatTable, index: number): string | undefined {
  const at = slot(table, index);
  if (at === undefined) return undefined;
  const start = at + table.view.getUint32(at, true);
  const length = table.view.getUint32(start, true);
  if (start + 4 + length > table.view.byteLength) throw new RangeError("a string ends outside of the buffer");
  return Buffer.from(table.view.buffer, table.view.byteOffset + start + 4, length).toString("utf8");
}

/** Where the elements of a vector begin, and how many there are; elements have at least one byte. */
export function readVector(table: FlatTable, index: number): { at: number; length: number } {
  const at = slot(table, index);
  if (at === undefined) return { at: 0, length: 0 };
  const start = at + table.view.getUint32(at, true);
  const length = table.view.getUint32(start, true);
  if (start + 4 + length > table.view.byteLength) throw new RangeError("a vector ends outside of the buffer");
  return { at: start + 4, length };
}

/** The tables of a vector of tables. */
export function readTables(table: FlatTable, index: number): FlatTable[] {
  const vector = readVector(table, index);
  return Array.from({ length: vector.length }, (_, i) => {
    const at = vector.at + i * 4;
    return { view: table.view, at: at + table.view.getUint32(at, true) };
  });
}
