import { Table as ArrowTable, type Schema } from "apache-arrow";

/** A table in a form that can be compared. */
interface PlainTable {
  readonly schema: readonly string[];
  readonly rows: readonly unknown[];
}

/** Returns an answer in a form that can be compared: tables as their schema and rows, numbers of any width alike. */
export function plain(value: unknown): unknown {
  if (value instanceof ArrowTable)
    return { schema: fieldsOf(value.schema), rows: value.toArray().map(plain) };
  if (isSchema(value)) return fieldsOf(value);
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Map) return plain(Object.fromEntries(value));
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.iterator in value && !("toJSON" in value)) return [...(value as Iterable<unknown>)].map(plain);
  const data = "toJSON" in value && typeof value.toJSON === "function" ? value.toJSON() : value;
  if (Array.isArray(data)) return data.map(plain);
  if (typeof data !== "object") return data;
  const entries = Object.entries(data as object).filter(([, each]) => typeof each !== "function");
  return Object.fromEntries(entries.map(([name, each]) => [name, plain(each)]));
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && "fields" in value && "metadata" in value;
}

function fieldsOf({ fields, metadata }: Schema): string[] {
  const inOrder = (pairs: Map<string, string>) => JSON.stringify([...pairs].sort());
  const texts = fields.map(
    (field) => `${field.name}: ${field.type}${field.nullable ? "?" : ""} ${inOrder(field.metadata)}`,
  );
  return [inOrder(metadata), ...texts];
}

export function isTable(value: unknown): value is PlainTable {
  return typeof value === "object" && value !== null && "schema" in value && "rows" in value;
}
