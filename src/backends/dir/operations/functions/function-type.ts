import type { JsonValue } from "@bufbuild/protobuf";
import type { ArrowField, ArrowType } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { isJsonObject } from "../../../../runtime/text.ts";

/** A type of LanceDB's functions: a plain one, or a list of values of a plain one. */
export interface FunctionType {
  readonly item: string;
  /** The kind of a list; absent for a single value. */
  readonly list?: "list" | "fixed_size_list";
  /** Number of values of a list of fixed size. */
  readonly size?: number;
}

/** The names of plain types. */
const PLAIN = new Set([
  ...["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
  ...["float16", "float32", "float64", "utf8", "large_utf8", "binary", "large_binary", "date32", "date64"],
]);

/** Maximum number of values of a list of fixed size. */
const MAX_SIZE = 1_000_000;

const TYPE = /^(?:(list)<(\w+)>|(fixed_size_list)<(\w+), ([1-9]\d{0,6})>|(\w+))$/;

/**
 * Reads a type in the words of LanceDB's clients: a name, or the JSON form of a list whose values may be null.
 *
 * @throws LanceError Unsupported for one that a column here cannot have
 */
export function parseFunctionType(text: string, place: string): FunctionType {
  const type = text.startsWith("{") ? typeOfJson(text) : typeOfName(text);
  if (type !== undefined) return type;
  const types = `${[...PLAIN].join(", ")}, list<T> and fixed_size_list<T, N> of these`;
  throw new LanceError("Unsupported", `${place} has the type ${text.slice(0, 200)}; served are ${types}`);
}

function typeOfName(text: string): FunctionType | undefined {
  const [, list, inner, fixed, element, size, plain] = TYPE.exec(text) ?? [];
  const item = inner ?? element ?? plain ?? "";
  if (!PLAIN.has(item)) return undefined;
  if (list !== undefined) return { item, list: "list" };
  return fixed === undefined ? { item } : sized(item, Number(size));
}

function typeOfJson(text: string): FunctionType | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
  const { type, length, fields } = isJsonObject(value) ? value : {};
  const [child] = Array.isArray(fields) && fields.length === 1 ? fields : [];
  const inner = isJsonObject(child) && isJsonObject(child["type"]) ? child["type"]["type"] : undefined;
  if (typeof inner !== "string" || !PLAIN.has(inner)) return undefined;
  if (type === "list") return { item: inner, list: "list" };
  return type === "fixed_size_list" && typeof length === "number" ? sized(inner, length) : undefined;
}

function sized(item: string, size: number): FunctionType | undefined {
  return Number.isInteger(size) && size >= 1 && size <= MAX_SIZE
    ? { item, list: "fixed_size_list", size }
    : undefined;
}

/** Returns the name of a type, whether values of a list may be null or not. */
export function functionTypeName({ item, list, size }: FunctionType): string {
  if (list === undefined) return item;
  return list === "list" ? `list<${item}>` : `fixed_size_list<${item}, ${size}>`;
}

/** Returns the name of the type of a column; undefined if functions here do not take such a column. */
export function functionTypeOf({ type, children, dictionary }: ArrowField): string | undefined {
  if (dictionary !== undefined) return undefined;
  const [child] = children;
  const item = child && functionTypeOf(child);
  if (type.name === "list") return item === undefined ? undefined : `list<${item}>`;
  if (type.name === "fixed_size_list")
    return item === undefined ? undefined : `fixed_size_list<${item}, ${type.size}>`;
  const name = plainName(type);
  return PLAIN.has(name) ? name : undefined;
}

function plainName(type: ArrowType): string {
  switch (type.name) {
    case "int":
      return `${type.signed ? "" : "u"}int${type.bits}`;
    case "float":
    case "date":
      return `${type.name}${type.bits}`;
    default:
      return type.name;
  }
}
