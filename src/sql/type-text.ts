import type { SqlType } from "./column-types.ts";

/** Returns a type as statements write it. */
export function typeText(type: SqlType): string {
  switch (type.id) {
    case "DECIMAL":
      return `DECIMAL(${type.width}, ${type.scale})`;
    case "LIST":
      return `${typeText(type.child)}[]`;
    case "ARRAY":
      return `${typeText(type.child)}[${type.size}]`;
    case "MAP":
      return `MAP(${typeText(type.key)}, ${typeText(type.value)})`;
    case "STRUCT":
      return `STRUCT(${type.types.map((each, i) => `${quoted(type.names[i] as string)} ${typeText(each)}`).join(", ")})`;
    case "TIMESTAMP_TZ":
      return "TIMESTAMP WITH TIME ZONE";
    default:
      return type.id;
  }
}

/** Returns a name as statements write it. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
