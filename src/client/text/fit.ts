import type { DataType, Field, Schema } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { nanosOfTime } from "./times.ts";

type Arrow = typeof import("apache-arrow");

/** Returns the fields of a schema with names, in the order of the names. */
export function fieldsNamed(schema: Schema, names: readonly string[]): Field[] {
  return names.map((name) => {
    const field = schema.fields.find((each) => each.name === name);
    if (field !== undefined) return field;
    const known = schema.names.map(String).join(", ");
    throw new LanceError("InvalidInput", `the table has no column ${JSON.stringify(name)}; it has ${known}`);
  });
}

/**
 * Reads the values of a column.
 *
 * @param firstRow number of the first row in errors
 * @throws LanceError InvalidInput that names the column and the row, if a value cannot be read.
 */
export function readColumn<T>(
  name: string,
  read: (value: T) => unknown,
  values: readonly T[],
  firstRow: number,
): unknown[] {
  return values.map((value, row) => {
    try {
      return read(value);
    } catch (cause) {
      const at = `column ${JSON.stringify(name)}, row ${firstRow + row}`;
      throw new LanceError("InvalidInput", `${at}: ${(cause as Error).message}`, { cause });
    }
  });
}

/** Returns a function that reads a cell of CSV as a value of a column; an empty cell is null. */
export function valueOfText(arrow: Arrow, type: DataType): (text?: string) => unknown {
  const { DataType: Is } = arrow;
  const read = valueOfJson(arrow, type);
  const isText = Is.isUtf8(type) || Is.isLargeUtf8(type);
  const isQuoted = Is.isTimestamp(type) || Is.isDate(type) || Is.isBinary(type) || Is.isLargeBinary(type);
  const jsonOf = (text: string): unknown => {
    if (isText || isQuoted || Is.isDecimal(type)) return text;
    if (Is.isInt(type)) return /^[-+]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : text;
    if (Is.isFloat(type)) return /^nan$/i.test(text) || !Number.isNaN(Number(text)) ? Number(text) : text;
    return parsed(/^(?:true|false)$/i.test(text) ? text.toLowerCase() : text);
  };
  return (text = "") => {
    const trimmed = isText ? text : text.trim();
    return trimmed === "" ? null : read(jsonOf(trimmed));
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns a function that converts a value of JSON to one of a column: times from ISO 8601 to nanoseconds, bytes from base64. */
export function valueOfJson(arrow: Arrow, type: DataType): (value: unknown) => unknown {
  const read = reader(arrow, type);
  return (value) => (value === null || value === undefined ? null : read(value));
}

function reader(arrow: Arrow, type: DataType): (value: unknown) => unknown {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type))
    return (value) => required(nanosOfTime(String(value)), value, "a time of ISO 8601");
  if (Is.isDate(type)) {
    return (value) => Number(required(nanosOfTime(String(value)), value, "a date of ISO 8601") / 1_000_000n);
  }
  if (Is.isBinary(type) || Is.isLargeBinary(type) || Is.isFixedSizeBinary(type))
    return (value) => Uint8Array.from(atob(String(value)), (character) => character.charCodeAt(0));
  if (Is.isDecimal(type)) return (value) => decimalWords(String(value), type.scale, type.bitWidth);
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const item = nested(arrow, type.children[0]?.type as DataType);
    return (value) => (Array.isArray(value) ? value.map(item) : value);
  }
  if (Is.isStruct(type)) {
    const members = type.children.map((child) => [child.name, nested(arrow, child.type)] as const);
    return (value) =>
      Object.fromEntries(
        members.map(([name, read]) => [name, read((value as Record<string, unknown>)[name])]),
      );
  }
  return (value) => value;
}

/** Times inside of lists and structs are in milliseconds, as the library takes them. */
function nested(arrow: Arrow, type: DataType): (value: unknown) => unknown {
  const read = valueOfJson(arrow, type);
  if (!arrow.DataType.isTimestamp(type)) return read;
  return (value) => {
    const nanos = read(value) as bigint | null;
    return nanos === null ? null : Number(nanos / 1_000_000n);
  };
}

function required<T>(found: T | undefined, value: unknown, what: string): T {
  if (found !== undefined) return found;
  throw new LanceError("InvalidInput", `${JSON.stringify(value)?.slice(0, 100)} is not ${what}`);
}

/** Returns a decimal as Arrow keeps it: in words of 32 bits, the lowest first. */
function decimalWords(text: string, scale: number, bits: number): Uint32Array {
  const [, sign, whole = "", fraction = ""] = /^([-+]?)(\d+)(?:\.(\d*))?$/.exec(text.trim()) ?? [];
  const exact = whole !== "" && /^0*$/.test(fraction.slice(scale));
  const digits = required(
    exact ? whole + fraction.slice(0, scale).padEnd(scale, "0") : undefined,
    text,
    "a decimal that fits",
  );
  const value = BigInt.asUintN(bits, sign === "-" ? -BigInt(digits) : BigInt(digits));
  return Uint32Array.from({ length: bits / 32 }, (_, at) => Number((value >> BigInt(32 * at)) & 0xffffffffn));
}
