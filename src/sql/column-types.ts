import { type ArrowField, decodeSchema } from "../arrow/schema.ts";
import { LanceError } from "../namespace/errors.ts";
import type { SqlTable } from "./sql-engine.ts";
import { scoreField } from "./tree/searches.ts";

/** Type of a column in DuckDB: a name of its types, and what belongs to it. It is sent to the process as JSON. */
export type SqlType =
  | { readonly id: PlainSqlType }
  | { readonly id: "DECIMAL"; readonly width: number; readonly scale: number }
  | { readonly id: "LIST"; readonly child: SqlType }
  | { readonly id: "ARRAY"; readonly child: SqlType; readonly size: number }
  | { readonly id: "MAP"; readonly key: SqlType; readonly value: SqlType }
  | { readonly id: "STRUCT"; readonly names: readonly string[]; readonly types: readonly SqlType[] };

/** Types without parameters. */
export type PlainSqlType =
  | "BOOLEAN"
  | "TINYINT"
  | "SMALLINT"
  | "INTEGER"
  | "BIGINT"
  | "UTINYINT"
  | "USMALLINT"
  | "UINTEGER"
  | "UBIGINT"
  | "FLOAT"
  | "DOUBLE"
  | "VARCHAR"
  | "BLOB"
  | "DATE"
  | "TIME"
  | "TIME_NS"
  | "TIMESTAMP_S"
  | "TIMESTAMP_MS"
  | "TIMESTAMP"
  | "TIMESTAMP_NS"
  | "TIMESTAMP_TZ"
  | "INTERVAL";

/** A column of a table for the process: its type, or why SQL does not read it. */
export interface SqlColumn {
  readonly name: string;
  readonly type: SqlType;
  /** Type of Arrow that has no counterpart. The column then stands in the table, and a statement that reads it is refused. */
  readonly refused?: string;
}

/** Longest array of DuckDB; longer lists of a fixed size are lists. */
const MAX_ARRAY = 100_000;

/** Stands for the type of a column that is refused. */
const PLACEHOLDER: SqlType = { id: "VARCHAR" };

/** Returns the columns of an open table, and that which a search of it adds. */
export function fieldsOf({ schema, search }: Pick<SqlTable, "schema" | "search">): readonly ArrowField[] {
  const view = new DataView(schema.buffer, schema.byteOffset);
  const { fields } = decodeSchema(schema.subarray(8, 8 + view.getUint32(4, true)));
  return search === undefined ? fields : [...fields, scoreField(search)];
}

/**
 * Returns the fields of a table by their names in lower case.
 *
 * @param table name for errors
 * @throws LanceError Unsupported for names that differ only in case
 */
export function fieldsByName(fields: readonly ArrowField[], table: string): ReadonlyMap<string, ArrowField> {
  const byName = new Map<string, ArrowField>();
  for (const field of fields)
    if (byName.size === byName.set(field.name.toLowerCase(), field).size)
      throw new LanceError(
        "Unsupported",
        `the columns "${field.name}" of table "${table}" differ only in case, which SQL does not tell apart`,
      );
  return byName;
}

/** Returns the column of DuckDB for a field of Arrow. */
export function columnOf(field: ArrowField): SqlColumn {
  const type = typeOf(field);
  if (typeof type !== "string") return { name: field.name, type };
  return { name: field.name, type: PLACEHOLDER, refused: type };
}

const PLAIN: Readonly<Record<string, PlainSqlType>> = {
  null: "INTEGER",
  bool: "BOOLEAN",
  utf8: "VARCHAR",
  large_utf8: "VARCHAR",
  binary: "BLOB",
  large_binary: "BLOB",
  fixed_size_binary: "BLOB",
};

/** Extensions of JSON. Results have its text, whatever type the schema of a result without rows has. */
const JSON_TYPES: ReadonlySet<string | undefined> = new Set(["arrow.json", "lance.json"]);

const INTEGERS = { 8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT" } as const;
const TIMESTAMPS = { s: "TIMESTAMP_S", ms: "TIMESTAMP_MS", us: "TIMESTAMP", ns: "TIMESTAMP_NS" } as const;

/** Returns a type of DuckDB, or the name of the type of Arrow that has none. */
function typeOf(field: ArrowField): SqlType | string {
  const { type, children, dictionary, metadata } = field;
  if (JSON_TYPES.has(metadata["ARROW:extension:name"])) return { id: "VARCHAR" };
  const plain = PLAIN[type.name];
  if (plain !== undefined) return { id: plain };
  switch (type.name) {
    case "int": {
      const name = INTEGERS[type.bits];
      return { id: type.signed ? name : (`U${name}` as PlainSqlType) };
    }
    case "float":
      return { id: type.bits === 64 ? "DOUBLE" : "FLOAT" };
    case "decimal": {
      const { bits, precision: width, scale } = type;
      const fits = bits === 128 && width <= 38 && scale >= 0 && scale <= width && dictionary === undefined;
      return fits ? { id: "DECIMAL", width, scale } : `decimal${bits}(${width}, ${scale})`;
    }
    case "date":
      return { id: "DATE" };
    case "time":
      return { id: type.unit === "ns" ? "TIME_NS" : "TIME" };
    case "timestamp":
      return { id: type.timezone === undefined ? TIMESTAMPS[type.unit] : "TIMESTAMP_TZ" };
    case "duration":
      return { id: "INTERVAL" };
    case "list":
      return withChild(children[0], (child) => ({ id: "LIST", child }));
    case "fixed_size_list": {
      const { size } = type;
      return withChild(children[0], (child) =>
        size > 0 && size <= MAX_ARRAY ? { id: "ARRAY", child, size } : { id: "LIST", child },
      );
    }
    case "map":
      return mapOf(children[0]);
    case "struct":
      return structOf(children);
    default:
      return type.name;
  }
}

function withChild(field: ArrowField | undefined, make: (child: SqlType) => SqlType): SqlType | string {
  const child = field === undefined ? "a list without items" : typeOf(field);
  return typeof child === "string" ? child : make(child);
}

function mapOf(entries: ArrowField | undefined): SqlType | string {
  const [key, value] = (entries?.children ?? []).map(typeOf);
  if (key === undefined || value === undefined) return "a map without entries";
  if (typeof key === "string") return key;
  return typeof value === "string" ? value : { id: "MAP", key, value };
}

/** Members of a struct of DuckDB differ without regard to case, and a struct has at least one. */
function structOf(children: readonly ArrowField[]): SqlType | string {
  const names = children.map(({ name }) => name);
  if (names.length === 0) return "a struct without members";
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
    return "a struct whose members differ only in case";
  const types: SqlType[] = [];
  for (const child of children) {
    const type = typeOf(child);
    if (typeof type === "string") return type;
    types.push(type);
  }
  return { id: "STRUCT", names, types };
}

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
