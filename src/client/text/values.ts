import type { DataType, Float } from "apache-arrow";
import { NumberText, textOfJson } from "../../arrow/rows/json-text.ts";
import { DAY_NANOS, MIXED_TIMES, timeOfDay, timeOfText } from "../../arrow/rows/times.ts";
import type { Cell } from "./csv.ts";
import { type JsonValue, parseJson } from "./json-text.ts";
import { isDoubleText, isHalfText, isSingleText, notFinite } from "./numbers.ts";

type Arrow = typeof import("apache-arrow");

/** Options of readers of values. */
export interface ReadOptions {
  /** Whether numbers are rounded to what columns of floating-point numbers hold. Default: they are refused. */
  readonly isRounded?: boolean | undefined;
}

type Read<T> = (value: T) => unknown;

/** Nanoseconds of the units of time, in the order of the library's units. */
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;
/** Checks of floating-point numbers, in the order of the library's precisions. */
const IS_KEPT = [isHalfText, isSingleText, isDoubleText] as const;

/**
 * Returns a function that reads the cells of CSV as the values of a column, one after the other, as {@link readerOfJson} does. A cell without anything is null;
 * quotes without anything are an empty text, or no bytes, and null in all other columns.
 */
export function readerOfCell(arrow: Arrow, type: DataType, options: ReadOptions): Read<Cell | undefined> {
  const { DataType: Is } = arrow;
  const content = contentOf(arrow, type);
  const read = readerOfJson(arrow, content, options);
  const isText = Is.isUtf8(content) || Is.isLargeUtf8(content);
  if (isText || isBytes(arrow, content)) return (cell) => read(cell);
  const isNested = content.children !== null && content.children.length > 0;
  const isNumber =
    Is.isInt(content) || Is.isFloat(content) || Is.isDecimal(content) || Is.isDuration(content);
  const jsonOf = (text: string): JsonValue => {
    if (isNested) return parseJson(text);
    if (isNumber && /^[-+]?[\d.]/.test(text)) return new NumberText(text);
    if (Is.isBool(content) && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
    return text;
  };
  return (cell) => {
    const text = cell?.trim() ?? "";
    return text === "" ? null : read(jsonOf(text));
  };
}

/**
 * Returns a function that reads values of JSON as those of a column, one after the other: times from ISO 8601 as nanoseconds, bytes from base64, maps from objects or
 * from lists of pairs. A text takes values of other kinds as JSON.
 *
 * @throws Error of that function for a value that the type does not hold exactly.
 */
export function readerOfJson(
  arrow: Arrow,
  type: DataType,
  options: ReadOptions,
): Read<JsonValue | undefined> {
  const read = readerOf(arrow, contentOf(arrow, type), options);
  return (value) => (value === null || value === undefined ? null : read(value));
}

/** Values that are kept once are read like others. */
function contentOf({ DataType: Is }: Arrow, type: DataType): DataType {
  return Is.isDictionary(type) ? (type.valueType as DataType) : type;
}

function readerOf(arrow: Arrow, type: DataType, options: ReadOptions): Read<JsonValue> {
  const { DataType: Is } = arrow;
  if (Is.isUtf8(type) || Is.isLargeUtf8(type))
    return (value) => (typeof value === "string" ? value : textOfJson(value));
  if (Is.isInt(type) || Is.isDuration(type))
    return (value) => BigInt(matched(/^[-+]?\d+$/, numberOf(value, type), type).replace("+", ""));
  if (Is.isFloat(type)) return floatReader(type, options);
  // Rows of the REST API have decimals as texts.
  if (Is.isDecimal(type))
    return (value) => decimalOf(typeof value === "string" ? value : numberOf(value, type));
  if (Is.isTimestamp(type)) return timestampReader(type.timezone);
  if (Is.isDate(type)) return dateReader(type.unit === arrow.DateUnit.DAY);
  if (Is.isTime(type)) {
    const nanos: bigint = UNITS[type.unit];
    return (value) => {
      const found = required(timeOfDay(textOf(value)), value, "a time of day");
      return required(found % nanos === 0n ? found / nanos : undefined, value, `of ${type}`);
    };
  }
  if (isBytes(arrow, type)) return (value) => bytesOf(textOf(value));
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const item = readerOfJson(arrow, type.children[0]?.type as DataType, options);
    return (value) => required(Array.isArray(value) ? value : undefined, value, "a list").map(item);
  }
  if (Is.isMap(type)) return mapReader(arrow, type, options);
  if (Is.isStruct(type)) return structReader(arrow, type, options);
  return (value) => value;
}

function floatReader(type: Float, { isRounded = false }: ReadOptions): Read<JsonValue> {
  return (value) => {
    if (typeof value === "string") return required(notFinite(value), value, "a number");
    const text = numberOf(value, type);
    const number = Number(required(/^[-+]?[\d.]/.test(text) ? text : undefined, value, "a number"));
    required(Number.isNaN(number) ? undefined : number, value, "a number");
    if (isRounded || IS_KEPT[type.precision](text, number)) return number;
    throw new Error(`${type} cannot hold ${text.slice(0, 100)} exactly, unless numbers may be rounded`);
  };
}

const UTC = /^(?:UTC|Z|[+-]00:?00)$/i;

/** A column in UTC also takes times without a zone, if all of them are so. */
function timestampReader(zone: string | null | undefined): Read<JsonValue> {
  const isZoned = zone !== null && zone !== undefined && zone !== "";
  let hasZone: boolean | undefined;
  return (value) => {
    const time = required(timeOfText(textOf(value)), value, "a time of ISO 8601");
    hasZone ??= time.hasZone;
    if (time.hasZone !== hasZone) throw new Error(MIXED_TIMES);
    if (hasZone && !isZoned) throw new Error(`${quoted(value)} has a time zone, and the column has none`);
    if (!hasZone && isZoned && !UTC.test(zone))
      throw new Error(
        `${quoted(value)} has no time zone, and the column has ${zone}; end times in UTC with a Z`,
      );
    return time.nanos;
  };
}

function dateReader(isDay: boolean): Read<JsonValue> {
  return (value) => {
    const time = required(timeOfText(textOf(value)), value, "a date of ISO 8601");
    const isExact = isDay ? time.nanos % DAY_NANOS === 0n : time.nanos % UNITS[1] === 0n;
    return required(isExact && !time.hasZone ? time.nanos : undefined, value, "a date");
  };
}

function mapReader(arrow: Arrow, type: DataType, options: ReadOptions): Read<JsonValue> {
  const [keys, values] = type.children[0]?.type.children ?? [];
  const key = readerOfJson(arrow, keys?.type as DataType, options);
  const item = readerOfJson(arrow, values?.type as DataType, options);
  return (value) => {
    const pairs =
      value instanceof Map ? [...value] : required(Array.isArray(value) ? value : undefined, value, "a map");
    const read = pairs.map((pair) => {
      if (!Array.isArray(pair) || pair.length !== 2)
        throw new Error(`${quoted(pair)} is not a pair of a map`);
      return [key(pair[0]), item(pair[1])] as const;
    });
    const unique = new Map(read);
    if (unique.size === read.length) return unique;
    throw new Error(`${quoted(value)} has a key twice`);
  };
}

function structReader(arrow: Arrow, type: DataType, options: ReadOptions): Read<JsonValue> {
  const members = type.children.map(
    (child) => [child.name, readerOfJson(arrow, child.type, options)] as const,
  );
  const names = new Set(members.map(([name]) => name));
  return (value) => {
    const given = required(value instanceof Map ? value : undefined, value, "an object");
    const unknown = [...given.keys()].find((name) => !names.has(name));
    if (unknown !== undefined) throw new Error(`the column has no member ${JSON.stringify(unknown)}`);
    return Object.fromEntries(members.map(([name, read]) => [name, read(given.get(name))]));
  };
}

/** Returns the text of a number. */
function numberOf(value: JsonValue, type: DataType): string {
  if (value instanceof NumberText) return value.text;
  throw new Error(`${type} cannot hold ${quoted(value)}`);
}

/** Returns a decimal number without an exponent. */
function decimalOf(text: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] =
    /^([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,4}))?$/.exec(text) ?? [];
  if (whole + fraction === "") throw new Error(`${quoted(text)} is not a decimal number`);
  const shift = Number(power);
  if (shift === 0) return text;
  const digits = whole + fraction;
  const point = whole.length + shift;
  const padded = digits.padStart(digits.length + Math.max(0, 1 - point), "0").padEnd(point, "0");
  const at = Math.max(1, point);
  return `${sign}${padded.slice(0, at)}.${padded.slice(at)}`;
}

function bytesOf(base64: string): Uint8Array {
  try {
    const binary = atob(base64);
    // Other forms of the same bytes have lost something.
    if (btoa(binary) === base64) return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    // Below.
  }
  throw new Error(`${quoted(base64)} is not base64`);
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : textOfJson(value);
}

function matched(pattern: RegExp, text: string, type: DataType): string {
  if (pattern.test(text)) return text;
  throw new Error(`${type} cannot hold ${quoted(text)}`);
}

function isBytes({ DataType: Is }: Arrow, type: DataType): boolean {
  return Is.isBinary(type) || Is.isLargeBinary(type) || Is.isFixedSizeBinary(type);
}

function required<T>(found: T | undefined, value: unknown, what: string): T {
  if (found !== undefined) return found;
  throw new Error(`${quoted(value)} is not ${what}`);
}

function quoted(value: unknown): string {
  return textOfJson(value).slice(0, 100);
}
