import type { ArrowType } from "./schema.ts";

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
