import type { DataType, Field, Schema } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { nanosOfTime } from "./times.ts";

type Arrow = typeof import("apache-arrow");

const { isRawJSON } = JSON as { readonly isRawJSON?: (value: unknown) => boolean };

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
  const isQuoted = Is.isTimestamp(type) || Is.isDate(type) || Is.isTime(type) || isBytes(arrow, type);
  const jsonOf = (text: string): unknown => {
    if (isText || isQuoted || Is.isDecimal(type)) return text;
    if (Is.isInt(type) || Is.isDuration(type))
      return /^[-+]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : text;
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
  const isDecimal = arrow.DataType.isDecimal(type);
  return (value) => {
    if (value === null || value === undefined) return null;
    if (!isLongNumber(value)) return read(value);
    return isDecimal ? value.rawJSON : read(Number(value.rawJSON));
  };
}

function reader(arrow: Arrow, type: DataType): (value: unknown) => unknown {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type))
    return (value) => required(nanosOfTime(String(value)), value, "a time of ISO 8601");
  if (Is.isDate(type)) {
    return (value) => Number(required(nanosOfTime(String(value)), value, "a date of ISO 8601") / 1_000_000n);
  }
  if (Is.isTime(type)) {
    const nanos = 10n ** BigInt(9 - 3 * type.unit);
    const time = (value: unknown) => nanosOfTime(`1970-01-01T${value}`);
    return (value) => {
      const found = required(time(value), value, "a time of day");
      return required(found % nanos === 0n ? found / nanos : undefined, value, `of ${type}`);
    };
  }
  if (isBytes(arrow, type))
    return (value) => Uint8Array.from(atob(String(value)), (character) => character.charCodeAt(0));
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const item = valueOfJson(arrow, type.children[0]?.type as DataType);
    return (value) => (Array.isArray(value) ? value.map(item) : value);
  }
  if (Is.isStruct(type)) {
    const members = type.children.map((child) => [child.name, valueOfJson(arrow, child.type)] as const);
    return (value) =>
      Object.fromEntries(
        members.map(([name, read]) => [name, read((value as Record<string, unknown>)[name])]),
      );
  }
  return (value) => value;
}

/** Whether a value is a number of JSON with more digits than a number keeps. */
export function isLongNumber(value: unknown): value is { readonly rawJSON: string } {
  return typeof value === "object" && isRawJSON?.(value) === true;
}

function isBytes({ DataType: Is }: Arrow, type: DataType): boolean {
  return Is.isBinary(type) || Is.isLargeBinary(type) || Is.isFixedSizeBinary(type);
}

function required<T>(found: T | undefined, value: unknown, what: string): T {
  if (found !== undefined) return found;
  throw new LanceError("InvalidInput", `${JSON.stringify(value)?.slice(0, 100)} is not ${what}`);
}
