import type { JsonArrowDataType, JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";

/** A type as the schema of a table has it. */
export type TypeDescription = Pick<JsonArrowDataType, "type" | "length" | "logicalType" | "fields">;

const PLAIN: Readonly<Record<string, string>> = {
  utf8: "text",
  large_utf8: "text",
  utf8_view: "text",
  string: "text",
  large_string: "text",
  bool: "true or false",
  boolean: "true or false",
  binary: "bytes",
  large_binary: "bytes",
  null: "nothing",
  date32: "date",
  date64: "date",
  halffloat: "16-bit number",
  float16: "16-bit number",
  float: "32-bit number",
  float32: "32-bit number",
  double: "64-bit number",
  float64: "64-bit number",
};

const UNITS: Readonly<Record<string, string>> = {
  s: "seconds",
  ms: "milliseconds",
  us: "microseconds",
  ns: "nanoseconds",
};

/** Returns a type in words, such as `vector of 768 32-bit numbers`. */
export function typeInWords({ type, length, logicalType = "", fields }: TypeDescription): string {
  const [inner] = fields;
  const item = inner?.type === undefined ? "values" : typeInWords(inner.type);
  switch (type) {
    case "fixed_size_list":
      return /number|integer/.test(item)
        ? `vector of ${length ?? "?"} ${plural(item)}`
        : `${length} × ${item}`;
    case "list":
    case "large_list":
      return `list of ${plural(item)}`;
    case "struct":
      return `group of ${fields.map(({ name }) => name).join(", ")}`;
    case "map":
      return "map";
    case "fixed_size_binary":
      return `${length ?? "?"} bytes`;
    case "decimal128":
    case "decimal256":
    case "decimal":
      return `decimal number${precisionOf(length)}`;
  }
  const integer = /^(u?)int(\d+)$/.exec(type);
  if (integer !== null) return `${integer[2]}-bit integer${integer[1] === "u" ? ", not negative" : ""}`;
  return PLAIN[type] ?? timeInWords(logicalType || type) ?? (logicalType || type);
}

/** A decimal's length is its precision times 1000, plus its scale. */
function precisionOf(length: bigint | undefined): string {
  if (length === undefined) return "";
  return ` of ${length / 1000n} digits, ${length % 1000n} after the point`;
}

function timeInWords(type: string): string | undefined {
  const [kind, unit = "", zone] = type.split(":");
  if (kind === "timestamp") {
    const where = zone === undefined || zone === "-" ? "" : `, ${zone}`;
    return `time in ${UNITS[unit] ?? "some unit"}${where}`;
  }
  if (kind === "time" || kind === "time32" || kind === "time64") return "time of day";
  if (kind === "duration") return `duration in ${UNITS[unit] ?? "some unit"}`;
  if (kind === "dict") return "text, each value kept once";
  return undefined;
}

function plural(words: string): string {
  return /(number|integer|text|date)$/.test(words) ? `${words}s` : words;
}

/** Types whose name is followed by the types of their items. */
const NESTED: ReadonlySet<string> = new Set(["list", "large_list", "map"]);

/**
 * Returns the Arrow name of a type, such as `fixed_size_list<float32, 768>` or `timestamp(us, UTC)`. The schema of a table
 * names the type itself, and what that name omits in Lance's own words.
 */
export function arrowTypeName({ type, length, logicalType = "", fields }: TypeDescription): string {
  const [kind, ...parts] = logicalType.split(":");
  if (kind === "dict") {
    const [value = "", index = ""] = [parts.slice(0, -2).join(":"), parts.at(-2)];
    return `dictionary<${index}, ${value}>`;
  }
  const items = fields.map(itemName);
  switch (type) {
    case "fixed_size_list":
      return `fixed_size_list<${items[0] ?? "?"}, ${length ?? "?"}>`;
    case "struct":
      return `struct<${fields.map(({ name }, at) => `${name}: ${items[at]}`).join(", ")}>`;
    case "fixed_size_binary":
      return `fixed_size_binary(${length ?? "?"})`;
    case "decimal128":
    case "decimal256":
      // Its length is the precision times 1000, plus the scale.
      return length === undefined ? type : `${type}(${length / 1000n}, ${length % 1000n})`;
  }
  if (NESTED.has(type) && items.length > 0) return `${type}<${mapItems(type, fields, items).join(", ")}>`;
  const chosen = parts.filter((part) => part !== "-");
  return chosen.length > 0 ? `${kind}(${chosen.join(", ")})` : type;
}

function itemName({ type }: JsonArrowField): string {
  return type === undefined ? "?" : arrowTypeName(type);
}

/** A map has a struct of a key and a value as its item. */
function mapItems(
  type: string,
  fields: readonly JsonArrowField[],
  items: readonly string[],
): readonly string[] {
  const entries = type === "map" && fields[0]?.type?.type === "struct" ? fields[0].type.fields : undefined;
  return entries === undefined ? items : entries.map(itemName);
}
