import type { ArrowField } from "../../arrow/schema.ts";
import { isExactNumber, type TreeNode } from "./tree.ts";

/** Whole numbers of DuckDB, as its parser makes them. */
export const INTEGERS: ReadonlySet<string> = new Set(["INTEGER", "BIGINT"]);

/** Largest whole numbers that floats hold exactly, and most digits of a decimal fraction that every way of reading turns into the same float. */
const MAX_WHOLE = { 32: 2 ** 24, 64: 2 ** 53 } as const;
const MAX_DIGITS = 15;

/**
 * Returns a constant of a statement as a filter has it; undefined for one that DuckDB does not compare with the column in the column's own type, or not
 * exactly.
 */
export function literalOf(node: TreeNode | undefined, { type }: ArrowField): string | undefined {
  const constant = constantIn(node);
  if (constant === undefined) return undefined;
  const { id, value, scale } = constant;
  switch (type.name) {
    case "int":
      return INTEGERS.has(id) ? wholeNumber(value, type.bits, type.signed) : undefined;
    case "float":
      return type.bits === 16 ? undefined : floatLiteral(id, value, scale, type.bits);
    case "decimal":
      return decimalLiteral(id, value, scale, type);
    case "utf8":
    case "large_utf8":
      return id === "VARCHAR" ? textLiteral(value) : undefined;
    case "bool":
      return id === "BOOLEAN" && (value === "t" || value === "f") ? String(value === "t") : undefined;
    case "date":
      return type.bits === 32 && (id === "DATE" || id === "VARCHAR") && isDay(value)
        ? `date '${value}'`
        : undefined;
    case "timestamp":
      return type.unit === "us" && type.timezone === undefined ? timeLiteral(id, value) : undefined;
    default:
      return undefined;
  }
}

/** A constant: the name of its type in DuckDB, and its value. */
interface Constant {
  readonly id: string;
  readonly value: unknown;
  readonly scale: number;
}

/** Reads a constant, or the cast of a text to a type that has no constants of its own. */
function constantIn(node: TreeNode | undefined): Constant | undefined {
  if (node === undefined) return undefined;
  if (node["class"] === "CAST") {
    const inner = constantIn(node["child"] as TreeNode);
    const { id, type_info: info } = node["cast_type"] as TreeNode;
    const isKnown = ["BOOLEAN", "DATE", "TIMESTAMP"].includes(String(id)) && info === null;
    if (inner?.id !== "VARCHAR" || !isKnown || node["try_cast"] === true) return undefined;
    return { ...inner, id: String(id) };
  }
  if (node["class"] !== "CONSTANT") return undefined;
  const { type, is_null: isNull, value } = node["value"] as TreeNode;
  const { id, type_info: info } = type as TreeNode;
  if (isNull === true) return undefined;
  return { id: String(id), value, scale: Number((info as TreeNode | null)?.["scale"] ?? 0) };
}

function wholeNumber(value: unknown, bits: number, signed: boolean): string | undefined {
  const number = bigOf(value);
  if (number === undefined) return undefined;
  const fits = (signed ? BigInt.asIntN(bits, number) : BigInt.asUintN(bits, number)) === number;
  // The engine reads the sign apart from the digits.
  return fits && number > -(2n ** 63n) && number < 2n ** 63n ? String(number) : undefined;
}

/** Returns a number of the tree; undefined for one that is not whole. */
function bigOf(value: unknown): bigint | undefined {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  const text = isExactNumber(value) ? String((value as { readonly rawJSON: string }).rawJSON) : "";
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
}

function floatLiteral(id: string, value: unknown, scale: number, bits: 32 | 64): string | undefined {
  if (id === (bits === 64 ? "DOUBLE" : "FLOAT")) {
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    const text = String(value);
    return /[.e]/.test(text) ? text : `${text}.0`;
  }
  const number = bigOf(value);
  if (number === undefined) return undefined;
  if (INTEGERS.has(id)) return Math.abs(Number(number)) <= MAX_WHOLE[bits] ? `${number}.0` : undefined;
  const isExact = id === "DECIMAL" && bits === 64 && String(number).length <= MAX_DIGITS;
  return isExact ? fraction(number, scale) : undefined;
}

function decimalLiteral(
  id: string,
  value: unknown,
  scale: number,
  type: Extract<ArrowField["type"], { name: "decimal" }>,
): string | undefined {
  const number = bigOf(value);
  if (number === undefined || type.bits !== 128 || type.scale < 0) return undefined;
  if (!INTEGERS.has(id) && id !== "DECIMAL") return undefined;
  const digits = String(number).replace("-", "").length + type.scale - scale;
  if (scale > type.scale || digits > type.precision) return undefined;
  return `cast('${fraction(number, scale)}' as decimal(${type.precision}, ${type.scale}))`;
}

/** Writes a number of so many digits behind the point. */
function fraction(number: bigint, scale: number): string {
  const sign = number < 0n ? "-" : "";
  const digits = String(number < 0n ? -number : number).padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  return `${sign}${whole}.${digits.slice(digits.length - scale) || "0"}`;
}

function textLiteral(value: unknown): string | undefined {
  return typeof value === "string" && !value.includes("\0") ? `'${value.replaceAll("'", "''")}'` : undefined;
}

const DAY = /^(?:19|20)\d\d-\d\d-\d\d$/;

/** Whether a text is a day that the calendar has. */
function isDay(value: unknown): value is string {
  if (typeof value !== "string" || !DAY.test(value)) return false;
  const time = Date.parse(`${value}T00:00:00Z`);
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(value);
}

const TIME = /^(\S+) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?$/;

function timeLiteral(id: string, value: unknown): string | undefined {
  if (id !== "TIMESTAMP" && id !== "VARCHAR" && id !== "DATE") return undefined;
  const day = typeof value === "string" ? (TIME.exec(value)?.[1] ?? value) : undefined;
  if (id === "DATE" && day !== value) return undefined;
  return isDay(day) ? `timestamp '${day === value ? `${value} 00:00:00` : value}'` : undefined;
}
