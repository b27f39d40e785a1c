import { bitWidth } from "./batch-check.ts";
import type { ArrowField, ArrowSchema } from "./schema.ts";

/** What a value of no fixed length is taken for, in bits: a text of some words. */
const VARIABLE_BITS = 64 * 8;

/** How wide the rows of a schema are. */
export interface RowWidth {
  /** In bytes; columns of no fixed width are counted with a guess. */
  readonly bytes: number;
  /** Whether there is no guess in it. */
  readonly exact: boolean;
}

/** The width of a row in memory, from the types alone. */
export function rowWidth(schema: ArrowSchema): RowWidth {
  let [bits, exact] = [0, true];
  const add = (field: ArrowField, count: number) => {
    const type = field.dictionary?.index ?? field.type;
    const width = bitWidth(type);
    if (width !== undefined) bits += count * width;
    else if (type.name === "struct") for (const child of field.children) add(child, count);
    else if (type.name === "fixed_size_list")
      for (const child of field.children) add(child, count * type.size);
    else if (type.name !== "null") {
      bits += count * VARIABLE_BITS;
      exact = false;
    }
  };
  for (const field of schema.fields) add(field, 1);
  return { bytes: Math.ceil(bits / 8), exact };
}
