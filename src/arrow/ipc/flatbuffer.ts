/**
 * Reads FlatBuffers tables in place.
 *
 * Arrow's metadata is small, and only a few of its fields matter here. Reading them directly preserves unknown types
 * and needs no generated classes. Reading past the end throws RangeError, because every access goes through the
 * DataView.
 */
export interface FlatTable {
  readonly view: DataView;
  /** Start of the table in the view. */
  readonly at: number;
  /** Remaining budget, shared by all tables of the buffer. */
  readonly budget: FlatBudget;
}

/**
 * Remaining budget for reading a buffer.
 *
 * Tables may share what they refer to, so a few bytes can describe an endless tree: fields that share their children
 * double at each level. Every table and text therefore counts each time that it is read.
 */
interface FlatBudget {
  /** Number of tables. */
  tables: number;
  /** Bytes of tables, texts and references; a tree without sharing has no more than the buffer. */
  bytes: number;
  /** The buffer itself, from which texts are read; made for the first one, because browsers have no such class. */
  text: Buffer | undefined;
}

/** How many times larger than its buffer a tree may be: writers may share texts and small tables. */
const SHARING = 4;

/** Budget of even the smallest buffer, in bytes. */
const LEAST_BYTES = 1024;

/** Smallest size of a table: the offset to its vtable, and the reference to it. */
const TABLE_BYTES = 8;

/**
 * Returns the root table of a buffer.
 *
 * @param maxTables how many tables may be read. Default: as many as the buffer's size allows.
 */
export function rootTable(bytes: Uint8Array, maxTables: number = Number.POSITIVE_INFINITY): FlatTable {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const budget = { tables: maxTables, bytes: SHARING * bytes.byteLength + LEAST_BYTES, text: undefined };
  return { view, at: view.getUint32(0, true), budget };
}

function spend(budget: FlatBudget, tables: number, bytes: number): void {
  budget.tables -= tables;
  budget.bytes -= bytes;
  if (budget.tables < 0) throw new RangeError("it has too many fields");
  if (budget.bytes < 0) throw new RangeError("its tables share so much that they are larger than the buffer");
}

/** Sizes of the vtable and of the table, before the positions of its fields. */
const VTABLE_HEAD_BYTES = 4;

/** Returns the position of a field of a table; undefined if it has its default. */
function slot({ view, at }: Pick<FlatTable, "view" | "at">, index: number): number | undefined {
  const vtable = at - view.getInt32(at, true);
  const entry = VTABLE_HEAD_BYTES + index * 2;
  const size = view.getUint16(vtable, true);
  if (size < VTABLE_HEAD_BYTES) throw new RangeError("a table has no vtable");
  if (entry >= size) return undefined;
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

/**
 * Overwrites a byte in place.
 *
 * @throws RangeError, if the table omits it as its default.
 */
export function writeUint8(table: FlatTable, index: number, value: number): void {
  const at = slot(table, index);
  if (at === undefined) throw new RangeError(`field ${index} has no place to write to`);
  table.view.setUint8(at, value);
}

/**
 * Overwrites a number in place.
 *
 * @throws RangeError, if the table omits it as its default.
 */
export function writeInt64(table: FlatTable, index: number, value: bigint): void {
  const at = slot(table, index);
  if (at === undefined) throw new RangeError(`field ${index} has no place to write to`);
  table.view.setBigInt64(at, value, true);
}

/**
 * Lets a field refer to another place behind it in the buffer.
 *
 * @throws RangeError, if the table lacks the field.
 */
export function writeReference(table: FlatTable, index: number, to: number): void {
  const at = slot(table, index);
  if (at === undefined) throw new RangeError(`field ${index} has no place to write to`);
  table.view.setUint32(at, to - at, true);
}

export function readTable({ view, at, budget }: FlatTable, index: number): FlatTable | undefined {
  const place = slot({ view, at }, index);
  if (place === undefined) return undefined;
  spend(budget, 1, TABLE_BYTES);
  return { view, at: place + view.getUint32(place, true), budget };
}

export function readString(table: FlatTable, index: number): string | undefined {
  const { at, length } = readVector(table, index, 1);
  if (at === 0) return undefined;
  const { view, budget } = table;
  spend(budget, 0, length);
  budget.text ??= Buffer.from(view.buffer, view.byteOffset, view.byteLength);
  return budget.text.toString("utf8", at, at + length);
}

/**
 * Returns the position and the number of a vector's elements; 0 elements for a missing vector.
 *
 * @param elementBytes smallest size of an element. Default: 1.
 */
export function readVector(
  table: Pick<FlatTable, "view" | "at">,
  index: number,
  elementBytes = 1,
): { at: number; length: number } {
  const at = slot(table, index);
  if (at === undefined) return { at: 0, length: 0 };
  const start = at + table.view.getUint32(at, true);
  const length = table.view.getUint32(start, true);
  if (start + 4 + length * elementBytes > table.view.byteLength) {
    throw new RangeError("a vector ends outside of the buffer");
  }
  return { at: start + 4, length };
}

const REFERENCE_BYTES = 4;

/** Returns the tables of a vector of tables. */
export function readTables(table: FlatTable, index: number): FlatTable[] {
  const { view, budget } = table;
  const vector = readVector(table, index, REFERENCE_BYTES);
  spend(budget, vector.length, vector.length * TABLE_BYTES);
  const tables: FlatTable[] = [];
  const end = vector.at + vector.length * REFERENCE_BYTES;
  for (let at = vector.at; at < end; at += REFERENCE_BYTES) {
    tables.push({ view, at: at + view.getUint32(at, true), budget });
  }
  return tables;
}

/**
 * Reads a 64-bit length or offset in place.
 *
 * @throws RangeError, if it is negative or beyond exact numbers.
 */
export function readLength(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  if (high >= 2 ** 21) throw new RangeError(`${view.getBigInt64(at, true)} is no length`);
  return high * 2 ** 32 + view.getUint32(at, true);
}
