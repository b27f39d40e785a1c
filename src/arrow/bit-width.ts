import type { ArrowField, ArrowSchema, ArrowType } from "./schema.ts";

/** Returns the width of a value in bits; undefined for types that are not laid out value by value. */
export function bitWidth(type: ArrowType): number | undefined {
  switch (type.name) {
    case "bool":
      return 1;
    case "int":
    case "float":
    case "decimal":
    case "date":
    case "time":
    case "interval":
      return type.bits;
    case "timestamp":
    case "duration":
      return 64;
    case "fixed_size_binary":
      return type.width * 8;
    default:
      return undefined;
  }
}

/** Assumed width of a value without a fixed length, in bits: a text of some words. */
const VARIABLE_BITS = 64 * 8;

/** Width of the rows of a schema. */
interface RowWidth {
  /** In bytes; columns without a fixed width count with a guess. */
  readonly bytes: number;
  /** Whether the width contains no guess. */
  readonly exact: boolean;
}

/** Returns the width of a row in memory, from the types alone. */
export function rowWidth({ fields }: Pick<ArrowSchema, "fields">): RowWidth {
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
  for (const field of fields) add(field, 1);
  return { bytes: Math.ceil(bits / 8), exact };
}
