/*
 * Rows are ordered by the id of their parent, then by their kind, then by their own name, each by its UTF-8 bytes. The
 * children of a namespace of one kind are therefore adjacent and in the order of a listing, and everything below a
 * namespace forms two runs.
 */

/** A place in the order of rows, with or without a row. */
export interface RowKey {
  /** Memory that contains the id. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Start of the object's own name; the parent's id ends one byte before, unless this is the start of the id. */
  readonly nameStart: number;
  /** Number of the kind; -1 for a place before all kinds. */
  readonly kind: number;
}

/** A place in the order that is overwritten repeatedly. */
export type MutableKey = { -readonly [K in keyof RowKey]: RowKey[K] };

/** Creates a key for a place that is found repeatedly. */
export function createKey(): MutableKey {
  return { bytes: new Uint8Array(), start: 0, end: 0, nameStart: 0, kind: 0 };
}

/** Compares two places: negative if the first one is earlier. */
export function compareKeys(a: RowKey, b: RowKey): number {
  return (
    compareBytes(a.bytes, a.start, parentEnd(a), b.bytes, b.start, parentEnd(b)) ||
    a.kind - b.kind ||
    compareBytes(a.bytes, a.nameStart, a.end, b.bytes, b.nameStart, b.end)
  );
}

/** Returns the end of the parent's id, which is empty for children of the root. */
export function parentEnd({ start, nameStart }: RowKey): number {
  return nameStart === start ? start : nameStart - 1;
}

/** Whether an object is a direct child of the parent of another place. */
export function isChild(key: RowKey, place: RowKey): boolean {
  return compareBytes(key.bytes, key.start, parentEnd(key), place.bytes, place.start, parentEnd(place)) === 0;
}

/** Compares two ranges of bytes; a range is before all that begin with it. */
export function compareBytes(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): number {
  const length = Math.min(aEnd - aStart, bEnd - bStart);
  for (let i = 0; i < length; i++) {
    const difference = (a[aStart + i] as number) - (b[bStart + i] as number);
    if (difference !== 0) return difference;
  }
  return aEnd - aStart - (bEnd - bStart);
}
