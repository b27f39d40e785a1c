import type { DataType, RecordBatch, Vector } from "apache-arrow";
import { createRowReader, type ReadItem } from "../row-reader.ts";
import { decimalText } from "./decimal-text.ts";
import { textOfJson } from "./json-text.ts";
import { NumberText } from "./numbers.ts";
import { textOfDay, textOfTime, textOfTimeOfDay } from "./times.ts";

type Arrow = typeof import("apache-arrow");

/** Digits of the fraction of a second, by the unit of a type. */
const DIGITS = [0, 3, 6, 9] as const;
const DAY_MILLIS = 86_400_000;

/**
 * Creates a reader of rows as names with values that JSON has: times as texts of ISO 8601 with all their digits, bytes in base64, 64-bit integers
 * as bigints, decimals as {@link NumberText}.
 */
export function createTextReader(arrow: Arrow): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  return createRowReader(arrow, textItem);
}

/** Returns a value as text: a text as it is, and everything else as JSON. */
export function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : textOfJson(value);
}

/** Reads items of a type that is neither a list nor a struct nor a map. */
export function textItem(arrow: Arrow, type: DataType): ReadItem {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    const zone = type.timezone ? "Z" : "";
    // The library would round to milliseconds.
    return (column, index) => `${textOfTime(BigInt(rawOf(column, index)), digits)}${zone}`;
  }
  if (Is.isDate(type)) {
    if (type.unit === arrow.DateUnit.DAY) return (column, index) => textOfDay(Number(rawOf(column, index)));
    return (column, index) => textOfMillis(BigInt(rawOf(column, index)));
  }
  if (Is.isTime(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    return (column, index) => textOfTimeOfDay(BigInt(rawOf(column, index)), digits);
  }
  if (Is.isDecimal(type))
    return (column, index) => new NumberText(decimalText(column.get(index), type.scale));
  if (Is.isFloat(type) && type.precision === arrow.Precision.SINGLE)
    return (column, index) => shortest(column.get(index));
  if (Is.isBinary(type) || Is.isLargeBinary(type) || Is.isFixedSizeBinary(type))
    return (column, index) => base64Of(column.get(index));
  return (column, index) => column.get(index);
}

/** Returns a value as Arrow keeps it. */
function rawOf(column: Vector, index: number): bigint | number {
  return column.data[0]?.values[index];
}

/** Writes a date of milliseconds, which should be a whole day. */
function textOfMillis(millis: bigint): string {
  const text = textOfTime(millis, 3);
  return millis % BigInt(DAY_MILLIS) === 0n ? text.slice(0, text.indexOf("T")) : text;
}

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000)
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** Returns a number with the fewest digits that make up the same number of 32 bits. */
export function shortest(value: number): number {
  for (const digits of [6, 7, 8]) {
    const short = Number(value.toPrecision(digits));
    if (Object.is(Math.fround(short), value)) return short;
  }
  return value;
}
