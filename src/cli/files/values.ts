import type { DataType, RecordBatch } from "apache-arrow";
import { createRowReader, type ReadItem } from "../../client/row-reader.ts";
import { decimalText } from "../../client/text/decimal-text.ts";

type Arrow = typeof import("apache-arrow");
/** A number of any precision, as JSON writes it. */
export interface Digits {
  readonly rawJSON: string;
}

/** Digits of the fraction of a second, by the unit of a type. */
const DIGITS = [0, 3, 6, 9] as const;

/** Returns a reader of the rows of a result: names with values, times as texts in ISO 8601, bytes in base64. */
export async function createTextReader(): Promise<(batch: RecordBatch) => Iterable<Record<string, unknown>>> {
  return createRowReader(await import("apache-arrow"), readerOfValue);
}

/** Reads items as what JSON has, with 64-bit integers as bigints and decimals as {@link Digits}. */
function readerOfValue(arrow: Arrow, type: DataType): ReadItem {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    const zone = type.timezone ? "Z" : "";
    // The library would round to milliseconds.
    return (column, index) => timestampText(BigInt(column.data[0]?.values[index]), digits, zone);
  }
  if (Is.isDate(type)) return (column, index) => dateText(Number(column.get(index)));
  if (Is.isTime(type)) {
    const digits = DIGITS[type.unit] ?? 0;
    return (column, index) =>
      timestampText(BigInt(column.get(index)), digits, "").slice("1970-01-01T".length);
  }
  if (Is.isDecimal(type)) return (column, index) => JSON.rawJSON(decimalText(column.get(index), type.scale));
  if (Is.isFloat(type) && type.precision === arrow.Precision.SINGLE)
    return (column, index) => shortest(column.get(index));
  return (column, index) => plain(column.get(index));
}

/** Converts a value of any other type. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  const content =
    "toJSON" in value && typeof value.toJSON === "function" ? (value.toJSON() as unknown) : value;
  if (typeof content !== "object" || content === null) return content;
  if (Symbol.iterator in content) return Array.from(content as Iterable<unknown>, plain);
  return Object.fromEntries(Object.entries(content).map(([name, item]) => [name, plain(item)]));
}

/** Formats a time as `2026-05-04T13:02:01.25`, with as many digits as it has; one that no calendar has stays a number. */
function timestampText(value: bigint, digits: number, zone: string): string {
  const scale = 10n ** BigInt(digits);
  const fraction = ((value % scale) + scale) % scale;
  const date = new Date(Number((value - fraction) / scale) * 1000);
  if (Number.isNaN(date.getTime())) return String(value);
  const tail = digits === 0 ? "" : String(fraction).padStart(digits, "0").replace(/0+$/, "");
  return `${date.toISOString().slice(0, -".000Z".length)}${tail === "" ? "" : `.${tail}`}${zone}`;
}

function dateText(millis: number): string {
  const date = new Date(millis);
  return Number.isNaN(date.getTime()) ? String(millis) : date.toISOString().replace(/T.*/, "");
}

/** Returns a number with the fewest digits that make up the same number of 32 bits. */
function shortest(value: number): number {
  for (const digits of [6, 7, 8]) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

declare global {
  interface JSON {
    /** Makes `JSON.stringify` write a number as the text has it. */
    rawJSON(text: string): Digits;
  }
}
