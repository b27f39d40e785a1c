import type { Data, DataType, RecordBatch } from "apache-arrow";
import { ListItems, NumberText, textOfJson } from "./json-text.ts";
import { createRowReader, type ItemForms, type ReadItems } from "./row-reader.ts";
import { textOfDay, textOfTime, textOfTimeOfDay } from "./times.ts";

type Arrow = typeof import("apache-arrow");

/** Digits of the fraction of a second, by the unit of a type. */
const DIGITS = [0, 3, 6, 9] as const;
const DAY_MILLIS = 86_400_000;

/** Options of {@link createTextReader}. */
export interface TextForms {
  /** Whether decimals are texts, which parsers of JSON do not round. Default: numbers with all their digits. */
  readonly hasDecimalTexts?: boolean | undefined;
}

/**
 * Creates a reader of rows as names with values that JSON has: times as texts of ISO 8601 with all their digits, bytes in base64, 64-bit integers
 * as bigints, lists as {@link ListItems}, decimals as {@link NumberText}. This is the only mapping of Arrow's types to text (docs/rest-rows.md).
 */
export function createTextReader(
  arrow: Arrow,
  { hasDecimalTexts = false }: TextForms = {},
): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  return createRowReader(arrow, hasDecimalTexts ? { ...TEXT_FORMS, ofType: decimalsAsTexts } : TEXT_FORMS);
}

/** Returns a value as text: a text as it is, and everything else as JSON. */
export function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : textOfJson(value);
}

/** How {@link createTextReader} reads items. */
export const TEXT_FORMS: ItemForms = {
  ofType: textItems,
  ofList: (item, start, length) => new ListItems(item, start, length),
};

function decimalsAsTexts(arrow: Arrow, type: DataType): ReadItems {
  if (arrow.DataType.isDecimal(type)) return decimalTexts(type.scale);
  return textItems(arrow, type);
}

function textItems(arrow: Arrow, type: DataType): ReadItems {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    const zone = type.timezone ? "Z" : "";
    // The library would round to milliseconds.
    return ofValues((value) => `${textOfTime(BigInt(value), digits)}${zone}`);
  }
  if (Is.isDate(type)) {
    if (type.unit === arrow.DateUnit.DAY) return ofValues((value) => textOfDay(Number(value)));
    return ofValues((value) => textOfMillis(BigInt(value)));
  }
  if (Is.isTime(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    return ofValues((value) => textOfTimeOfDay(BigInt(value), digits));
  }
  if (Is.isDecimal(type)) {
    const read = decimalTexts(type.scale);
    return (data) => {
      const textAt = read(data);
      return (index) => new NumberText(textAt(index));
    };
  }
  if (Is.isFloat(type) && type.precision === arrow.Precision.SINGLE)
    return ofValues((value) => shortest(Number(value)));
  if (Is.isInt(type) || Is.isDuration(type) || (Is.isFloat(type) && type.precision !== arrow.Precision.HALF))
    return ofValues((value) => value);
  const isBytes = Is.isBinary(type) || Is.isLargeBinary(type) || Is.isFixedSizeBinary(type);
  return (data) => {
    const vector = arrow.makeVector(data);
    return isBytes ? (index) => base64Of(vector.get(index)) : (index) => vector.get(index);
  };
}

/** Reads items from the numbers that Arrow keeps for them. */
function ofValues(textOf: (value: bigint | number) => unknown): ReadItems {
  return ({ values }) =>
    (index) =>
      textOf(values[index]);
}

function decimalTexts(scale: number): (data: Data) => (index: number) => string {
  return ({ values, stride }) =>
    (index) =>
      decimalText(values.subarray(stride * index, stride * (index + 1)), scale);
}

/** Writes a date of milliseconds, which should be a whole day. */
function textOfMillis(millis: bigint): string {
  const text = textOfTime(millis, 3);
  return millis % BigInt(DAY_MILLIS) === 0n ? text.slice(0, text.indexOf("T")) : text;
}

function base64Of(bytes: Uint8Array): string {
  if (bytes.toBase64 !== undefined) return bytes.toBase64();
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000)
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

declare global {
  interface Uint8Array {
    /** Encodes bytes; the oldest Node and browsers lack it. */
    toBase64?(): string;
  }
}

/** Powers of ten by which numbers of {@link shortest} are tried. */
const POWERS = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);

/** Returns a number with the fewest digits that make up the same number of 32 bits. */
export function shortest(value: number): number {
  const size = Math.abs(value);
  for (const digits of [6, 7, 8]) {
    const power = POWERS[digits - 1 - Math.floor(Math.log10(size))];
    // A whole number divided by such a power is the double next to the decimal, and takes a fifth of the time of a text.
    const short = power === undefined ? Number(value.toPrecision(digits)) : Math.round(value * power) / power;
    if (Object.is(Math.fround(short), value)) return short;
  }
  return value;
}

/** Returns a decimal with all its digits; Arrow keeps it in words of 32 bits, the lowest first. */
export function decimalText(words: Uint32Array, scale: number): string {
  const whole = [...words].reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  const value = BigInt.asIntN(words.length * 32, whole);
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, "0");
  const point = digits.length - scale;
  const zeros = digits === "0" ? "" : "0".repeat(Math.max(0, -scale));
  const text = scale <= 0 ? `${digits}${zeros}` : `${digits.slice(0, point)}.${digits.slice(point)}`;
  return value < 0n ? `-${text}` : text;
}
