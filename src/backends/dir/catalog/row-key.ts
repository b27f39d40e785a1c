/*
 * Rows are ordered by the id of their parent, then by their kind, then by their own name, each by its UTF-8
 * bytes: the children of one kind of a namespace stand together in the order of a listing, and everything below
 * a namespace stands in two runs.
 */

/** A place in the order of rows; no row has to be there. */
export interface RowKey {
  /** Where the id is. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Where the object's own name begins; the parent's id ends one byte before, unless this is the start. */
  readonly nameStart: number;
  /** The number of the kind; a place before all kinds is -1. */
  readonly kind: number;
}

/** Compares two places: negative when the first one comes before. */
export function compareKeys(a: RowKey, b: RowKey): number {
  return (
    compareBytes(a.bytes, a.start, parentEnd(a), b.bytes, b.start, parentEnd(b)) ||
    a.kind - b.kind ||
    compareBytes(a.bytes, a.nameStart, a.end, b.bytes, b.nameStart, b.end)
  );
}

/** The end of the parent's id; the root's is empty. */
export function parentEnd({ start, nameStart }: RowKey): number {
  return nameStart === start ? start : nameStart - 1;
}

/** Whether an object is a direct child of the same parent as another place. */
export function isChild(key: RowKey, place: RowKey): boolean {
  return compareBytes(key.bytes, key.start, parentEnd(key), place.bytes, place.start, parentEnd(place)) === 0;
}

/** Compares two pieces of bytes; of two that begin alike the shorter one comes first. */
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
