import { VIEW_BYTES } from "../ipc/arrays.ts";
import type { MessageHead } from "../ipc/message.ts";
import type { ArrowField, ArrowType } from "../schema.ts";

/** Maximum number of texts in the dictionaries of an upload together, and of indices in a message that are read: some 20 ms. */
const MAX_READ = 8 * 1024 * 1024;

/** The sizes of the texts or binary values in the dictionaries of an upload. */
export interface DictionaryTexts {
  /**
   * Sets or extends a dictionary.
   *
   * @throws RangeError, if all together have too many texts.
   */
  add(head: MessageHead, sizes: readonly number[]): void;
  /** Whether the dictionary of a field has texts. */
  has(field: ArrowField): boolean;
  /**
   * Returns the size of the texts to which the indices in a column refer, in bytes, or more if there are many indices. The engine refuses
   * indices of no text.
   *
   * @param before number of indices of the message that were read before
   */
  sizeOf(field: ArrowField, before: number, length: number, indices: () => Uint8Array): number;
}

/** Creates the dictionaries of an upload. */
export function createDictionaryTexts(): DictionaryTexts {
  const dictionaries = new Map<bigint, { readonly sizes: number[]; longest: number }>();
  let count = 0;
  const of = ({ dictionary }: ArrowField) => dictionary && dictionaries.get(dictionary.id);
  return {
    add({ dictionaryId: id = -1n, isDelta }, sizes) {
      const known = dictionaries.get(id);
      if (known !== undefined && !isDelta) count -= known.sizes.length;
      count += sizes.length;
      if (count > MAX_READ) throw new RangeError(`its dictionaries have more than ${MAX_READ} texts`);
      const all = (isDelta ? known : undefined) ?? { sizes: [], longest: 0 };
      for (const size of sizes) {
        all.sizes.push(size);
        all.longest = Math.max(all.longest, size);
      }
      dictionaries.set(id, all);
    },
    has: (field) => of(field) !== undefined,
    sizeOf(field, before, length, indices) {
      const { sizes, longest } = of(field) ?? { sizes: [], longest: 0 };
      if (before + length > MAX_READ) return length * longest;
      const read = indexReader(field.dictionary?.index.bits ?? 32, indices());
      let sum = 0;
      for (let i = 0; i < length; i++) sum += sizes[read(i)] ?? 0;
      return sum;
    },
  };
}

function indexReader(bits: number, indices: Uint8Array): (i: number) => number {
  const view = new DataView(indices.buffer, indices.byteOffset, indices.byteLength);
  if (bits === 8) return (i) => view.getUint8(i);
  if (bits === 16) return (i) => view.getUint16(i * 2, true);
  return (i) => view.getUint32(i * (bits / 8), true);
}

/** Whether values of a type have sizes of their own. */
export function hasSizes(name: ArrowType["name"]): boolean {
  return name !== "fixed_size_binary" && /(?:utf8|binary)(?:_view)?$/.test(name);
}

/**
 * Returns the sizes of texts or binary values.
 *
 * @param bytes the offsets of the values, or their views
 * @throws RangeError, if there are too many.
 */
export function sizesOf(name: ArrowType["name"], bytes: () => Uint8Array, length: number): number[] {
  if (length > MAX_READ) throw new RangeError(`a dictionary has more than ${MAX_READ} texts`);
  if (length === 0) return [];
  const { buffer, byteOffset, byteLength } = bytes();
  const view = new DataView(buffer, byteOffset, byteLength);
  const width = name.startsWith("large") ? 8 : 4;
  const sizes: number[] = [];
  for (let i = 0; i < length; i++) {
    if (name.endsWith("_view")) sizes.push(view.getUint32(i * VIEW_BYTES, true));
    // The lower halves of large offsets are enough: no dictionary is as long as the upper ones count.
    else sizes.push((view.getUint32((i + 1) * width, true) - view.getUint32(i * width, true)) >>> 0);
  }
  return sizes;
}
