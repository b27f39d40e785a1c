/** The names of types in the Lance Namespace specification, with Lance's own names for the same, where they differ. */
export const LANCE_TYPE_NAMES: readonly (readonly [specification: string, lance: string])[] = [
  ["float16", "halffloat"],
  ["float32", "float"],
  ["float64", "double"],
  ["utf8", "string"],
  ["large_utf8", "large_string"],
  ["date32", "date32:day"],
  ["date64", "date64:ms"],
];
