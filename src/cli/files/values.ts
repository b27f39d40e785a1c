import type { DataType, RecordBatch, Vector } from "apache-arrow";

type Arrow = typeof import("apache-arrow");
/** Reads an item of a column as what JSON has, with 64-bit integers as bigints and decimals as {@link Digits}. */
type Read = (column: Vector, index: number) => unknown;

/** A number of any precision, as JSON writes it. */
export interface Digits {
  readonly rawJSON: string;
}

/** Digits of the fraction of a second, by the unit of a type. */
const DIGITS = [0, 3, 6, 9] as const;

/** Returns a reader of the rows of a result: names with values, times as texts in ISO 8601, bytes in base64. */
export async function createRowReader(): Promise<(batch: RecordBatch) => Iterable<Record<string, unknown>>> {
  const arrow = await import("apache-arrow");
  return function* (batch) {
    const columns = batch.schema.fields.map(({ name, type }, at) => ({
      name,
      read: readerOf(arrow, type),
      column: batch.getChildAt(at) as Vector,
    }));
    for (let row = 0; row < batch.numRows; row++)
      yield Object.fromEntries(columns.map(({ name, read, column }) => [name, read(column, row)]));
  };
}

function readerOf(arrow: Arrow, type: DataType): Read {
  const read = readerOfValue(arrow, type);
  return (column, index) => (column.isValid(index) ? read(column, index) : null);
}

function readerOfValue(arrow: Arrow, type: DataType): Read {
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
  if (Is.isDecimal(type)) return (column, index) => decimal(column.get(index), type.scale, type.bitWidth);
  if (Is.isFloat(type) && type.precision === arrow.Precision.SINGLE)
    return (column, index) => shortest(column.get(index));
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const read = readerOf(arrow, type.children[0]?.type as DataType);
    return (column, index) => {
      const items: Vector = column.get(index);
      return Array.from({ length: items.length }, (_, at) => read(items, at));
    };
  }
  if (Is.isStruct(type)) {
    const readers = type.children.map((child) => [child.name, readerOf(arrow, child.type)] as const);
    return (column, index) =>
      Object.fromEntries(
        readers.map(([name, read], at) => [name, read(column.getChildAt(at) as Vector, index)]),
      );
  }
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

/** Returns a decimal, which Arrow keeps in words of 32 bits, the lowest first. */
function decimal(words: Uint32Array, scale: number, bits: number): Digits {
  const whole = [...words].reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  const value = BigInt.asIntN(bits, whole);
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, "0");
  const point = digits.length - scale;
  const text = scale <= 0 ? digits : `${digits.slice(0, point)}.${digits.slice(point)}`;
  return JSON.rawJSON(value < 0n ? `-${text}` : text);
}

declare global {
  interface JSON {
    /** Makes `JSON.stringify` write a number as the text has it. */
    rawJSON(text: string): Digits;
  }
}
