import type { JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import type { TypeDescription } from "./type-words.ts";

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
