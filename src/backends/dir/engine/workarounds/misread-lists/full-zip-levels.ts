import {
  type ColumnMetadata_Page,
  type FullZipLayout,
  RepDefLayer,
} from "../../../../../gen/lance/format/data_file_pb.ts";

const LISTS: readonly RepDefLayer[] = [
  RepDefLayer.REPDEF_ALL_VALID_LIST,
  RepDefLayer.REPDEF_NULLABLE_LIST,
  RepDefLayer.REPDEF_EMPTYABLE_LIST,
  RepDefLayer.REPDEF_NULL_AND_EMPTY_LIST,
];

/** The bytes of pages that may still be read. */
export interface PageBudget {
  bytes: number;
}

/** Size of the parts in which pages are read, in bytes. */
const WINDOW_BYTES = 256 * 1024;

/**
 * Whether the reader of the engine takes an entry without a value for one with a value: it has a level above those of the values and up to the
 * sum of the levels of all layers that are not lists.
 *
 * Whether an entry has such a level follows from the layers only if there is none above the innermost list, or if each entry has a value.
 * Otherwise the levels are read: a list that is null because the struct around it is null has the level of the struct.
 *
 * @param read reads bytes of the file
 * @param budget what is left of it decreases by the bytes that are read. A page for which it does not suffice counts as misread
 * @throws the errors of `read`
 */
export async function misreadsEntry(
  { bufferOffsets: [start = 0n], bufferSizes: [size = 0n] }: ColumnMetadata_Page,
  layout: FullZipLayout,
  read: (start: number, length: number) => Promise<Buffer>,
  budget: PageBudget,
): Promise<boolean> {
  const innermost = layout.layers.findIndex((layer) => LISTS.includes(layer));
  if (innermost < 0 || layout.numItems === layout.numVisibleItems) return false;
  const ofValues = nullableIn(layout.layers.slice(0, innermost));
  const counted = ofValues + nullableIn(layout.layers.slice(innermost));
  if (counted === ofValues) return false;

  const walk = createWalk(layout, ofValues);
  const end = Number(size);
  let at = 0;
  while (at < end) {
    const length = Math.min(WINDOW_BYTES, end - at);
    budget.bytes -= length;
    if (budget.bytes < 0) return true;
    const { isCounted, next } = walk(await read(Number(start) + at, length), counted);
    if (isCounted || next === 0) return true;
    at += next;
  }
  return at !== end;
}

function nullableIn(layers: readonly RepDefLayer[]): number {
  return layers.filter((layer) => layer === RepDefLayer.REPDEF_NULLABLE_ITEM).length;
}

/** Returns a function that goes over the entries in a part of a page, of which the last may be incomplete. */
function createWalk({ bitsRep, bitsDef, bitsPerValue, bitsPerOffset }: FullZipLayout, ofValues: number) {
  const bits = bitsRep + bitsDef;
  const wordBytes = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  const mask = 2 ** bitsDef - 1;
  const lengthBytes = bitsPerOffset / 8;

  /** @returns whether an entry without a value has a level up to `counted`, and where the first entry begins that has not been seen */
  return (part: Buffer, counted: number) => {
    let next = 0;
    while (next + wordBytes <= part.length) {
      const level = part.readUIntLE(next, wordBytes) & mask;
      if (level > ofValues && level <= counted) return { isCounted: true, next };
      const after = next + wordBytes;
      if (level > ofValues) next = after;
      else if (lengthBytes === 0) next = after + bitsPerValue / 8;
      else if (level > 0) next = after;
      else if (after + lengthBytes > part.length) break;
      else {
        const value =
          lengthBytes === 8 ? Number(part.readBigUInt64LE(after)) : part.readUIntLE(after, lengthBytes);
        next = after + lengthBytes + value;
      }
    }
    return { isCounted: false, next };
  };
}
