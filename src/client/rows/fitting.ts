import type { Data, DataType, Decimal, RecordBatch, Schema, Timestamp, Vector } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";

type Arrow = typeof import("apache-arrow");

/** Converts values of plain objects for the builders of apache-arrow. */
type Fit = (value: unknown) => unknown;

/** How numbers become those of 16, 32 and 64 bits, in the order of the library's precisions. */
const ROUNDS = [Math.f16round, Math.fround, (value: number) => value] as const;
/** Nanoseconds of the units of time, in the order of the library's units. */
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;
/** Times that a Date holds, in milliseconds around 1970. */
const MAX_MILLIS = 8.64e15;
const DAY_MILLIS = 86_400_000n;

/**
 * Converts the values of a column to the type of a table's column: integers may be numbers or bigints, dates and times may be
 * Dates or milliseconds since 1970, also nanoseconds as bigint, and decimals numbers, bigints or texts.
 *
 * @param placeOf names a row in errors, by its index. Default: by its number
 * @throws LanceError InvalidInput, if the type has no such value.
 */
export function fittingVector(
  arrow: Arrow,
  name: string,
  values: readonly unknown[],
  type: DataType,
  placeOf = (row: number) => `row ${row}`,
): Vector {
  const fit = fitOf(arrow, type);
  const fitting = values.map((value, row) => {
    try {
      return fit(value);
    } catch (cause) {
      const { message } = cause as Error;
      const place = `column ${JSON.stringify(name)}, ${placeOf(row)}`;
      throw new LanceError("InvalidInput", `${place}: ${message}`, { cause });
    }
  });
  return vectorOf(arrow, fitting, type);
}

/** Returns a column of fitting values; the builder of fixed-size lists omits the items of nulls at the end, so a value without nulls follows. */
function vectorOf(arrow: Arrow, values: readonly unknown[], type: DataType): Vector {
  const stored = storedType(arrow, type);
  const last = lastOf(arrow, type);
  const isCut = last !== null;
  const whole = isCut ? [...values, last] : values;
  const { data } = arrow.vectorFromArray(whole, stored);
  const vector = arrow.makeVector(data.map((each) => retyped(each, type)) as never) as Vector;
  return isCut ? vector.slice(0, values.length) : vector;
}

/** Returns a value whose lists of fixed size are complete; null for a type without them. */
function lastOf(arrow: Arrow, type: DataType): unknown {
  if (arrow.DataType.isFixedSizeList(type)) return new Array(type.listSize).fill(null);
  if (!arrow.DataType.isStruct(type)) return null;
  const members = type.children.map((child) => [child.name, lastOf(arrow, child.type)] as const);
  return members.some(([, value]) => value !== null) ? Object.fromEntries(members) : null;
}

/** Returns a type with integers for its times and dates: their builders count in numbers, which have too few digits. */
function storedType(arrow: Arrow, type: DataType): DataType {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type)) return new arrow.Int64();
  if (Is.isDate(type)) return type.unit === arrow.DateUnit.DAY ? new arrow.Int32() : new arrow.Int64();
  const children = (type.children ?? []).map((field) =>
    field.clone({ type: storedType(arrow, field.type) }),
  ) as never[];
  if (Is.isList(type)) return new arrow.List(children[0] as never);
  if (Is.isFixedSizeList(type)) return new arrow.FixedSizeList(type.listSize, children[0] as never);
  if (Is.isStruct(type)) return new arrow.Struct(children);
  return Is.isMap(type) ? new arrow.Map_(children[0] as never, type.keysSorted) : type;
}

function retyped(data: Data, type: DataType): Data {
  const children = data.children.map((child, at) => retyped(child, type.children[at]?.type as DataType));
  return data.clone(type, data.offset, data.length, data.nullCount, data as never, children);
}

function fitOf(arrow: Arrow, type: DataType): Fit {
  const fit = fitOfValue(arrow, type);
  return (value) => (value === null || value === undefined ? null : fit(value));
}

function fitOfValue(arrow: Arrow, type: DataType): Fit {
  const { DataType: Is } = arrow;
  if (Is.isInt(type)) return fitInteger(type, type.bitWidth, type.isSigned);
  if (Is.isTime(type)) return fitInteger(type, type.bitWidth);
  if (Is.isDuration(type)) return fitInteger(type, 64);
  if (Is.isTimestamp(type)) return fitTime(type);
  if (Is.isDate(type)) return fitDate(type, type.unit === arrow.DateUnit.DAY);
  if (Is.isDictionary(type)) return fitOf(arrow, type.valueType);
  if (Is.isDecimal(type)) return fitDecimal(type);
  if (Is.isFloat(type)) return fitFloat(type, ROUNDS[type.precision]);
  if (Is.isUtf8(type) || Is.isLargeUtf8(type)) return (value) => only(["string"], value, type);
  if (Is.isBool(type)) return (value) => only(["boolean"], value, type);
  if (Is.isBinary(type) || Is.isLargeBinary(type)) return (value) => only(["object", "string"], value, type);
  if (Is.isFixedSizeBinary(type))
    return (value) => ofLength(type.byteWidth, ArrayBuffer.isView(value) ? value : [], type);
  if (Is.isFixedSizeList(type)) {
    const item = fitOf(arrow, type.children[0]?.type as DataType);
    return (value) => ofLength(type.listSize, Array.from(iterable(value, type), item), type);
  }
  if (Is.isList(type)) {
    const item = fitOf(arrow, type.children[0]?.type as DataType);
    return (value) => Array.from(iterable(value, type), item);
  }
  if (Is.isMap(type)) {
    const [key, item] = (type.children[0]?.type.children ?? []).map((each) => fitOf(arrow, each.type));
    return (value) => {
      const object = only(["object"], value, type) as object;
      const pairs = value instanceof Map || Array.isArray(value) ? value : Object.entries(object);
      return new Map(Array.from(pairs, ([name, each]) => [key?.(name), item?.(each)]));
    };
  }
  if (Is.isStruct(type)) {
    const members = type.children.map((child) => [child.name, fitOf(arrow, child.type)] as const);
    return (value) => {
      const object = only(["object"], value, type) as Readonly<Record<string, unknown>>;
      return Object.fromEntries(members.map(([name, fit]) => [name, fit(object[name])]));
    };
  }
  return (value) => value;
}

function fitInteger(type: DataType, bitWidth: number, isSigned = true): Fit {
  const clamp = isSigned ? BigInt.asIntN : BigInt.asUintN;
  return (value) => {
    only(["number", "bigint"], value, type);
    const integer =
      typeof value === "bigint" || Number.isSafeInteger(value) ? BigInt(value as number) : undefined;
    if (integer === undefined || clamp(bitWidth, integer) !== integer) throw unfit(value, type);
    return bitWidth === 64 ? integer : Number(integer);
  };
}

/** Rounds, because the builder would cut numbers of 16 bits. */
function fitFloat(type: DataType, round: (value: number) => number): Fit {
  return (value) => {
    const number = Number(only(["number", "bigint"], value, type));
    const rounded = round(number);
    if (Number.isFinite(number) && !Number.isFinite(rounded)) throw unfit(value, type);
    return rounded;
  };
}

/** Converts to units of the type; a number of milliseconds has a fraction only to make up such units. */
function fitTime(type: Timestamp): Fit {
  const nanos: bigint = UNITS[type.unit];
  return (value) => {
    let time = value;
    if (typeof time !== "bigint") {
      const millis = millisOf(value, type);
      const fraction = Math.round((millis % 1) * Number(UNITS[1] / nanos || 1n));
      if (nanos >= UNITS[1] && millis % 1 !== 0) throw unfit(value, type);
      time = BigInt(Math.trunc(millis)) * UNITS[1] + BigInt(fraction) * nanos;
    }
    const units = (time as bigint) / nanos;
    if (units * nanos !== time || BigInt.asIntN(64, units) !== units) throw unfit(`${time} ns`, type);
    return units;
  };
}

/** Converts to days, which may have a time that is dropped, or to milliseconds. */
function fitDate(type: DataType, isDay: boolean): Fit {
  return (value) => {
    const millis = typeof value === "bigint" ? value / UNITS[1] : BigInt(Math.floor(millisOf(value, type)));
    if (!isDay) return millis;
    const days = (millis - (((millis % DAY_MILLIS) + DAY_MILLIS) % DAY_MILLIS)) / DAY_MILLIS;
    if (BigInt.asIntN(32, days) !== days) throw unfit(value, type);
    return Number(days);
  };
}

function millisOf(value: unknown, type: DataType): number {
  const millis = Number(value instanceof Date ? value : only(["number"], value, type));
  if (Math.abs(millis) <= MAX_MILLIS) return millis;
  throw unfit(value, type);
}

/** Returns a decimal as Arrow keeps it: in words of 32 bits, the lowest first. */
function fitDecimal(type: Decimal): Fit {
  const { scale, precision, bitWidth } = type;
  return (given) => {
    if (given instanceof Uint32Array) return given;
    const [, sign, whole = "", fraction = ""] = /^([-+]?)(\d*)(?:\.(\d*))?$/.exec(String(given).trim()) ?? [];
    const all = whole + fraction.padEnd(scale, "0");
    // A negative scale leaves zeros of the whole part out.
    const end = Math.max(0, whole.length + scale);
    const digits = all.slice(0, end);
    const isExact = whole + fraction !== "" && /^0*$/.test(all.slice(end));
    if (!isExact || digits.replace(/^0+/, "").length > precision) throw unfit(given, type);
    const value = BigInt.asUintN(bitWidth, sign === "-" ? -BigInt(digits || "0") : BigInt(digits || "0"));
    return Uint32Array.from({ length: bitWidth / 32 }, (_, at) =>
      Number((value >> BigInt(32 * at)) & 0xffffffffn),
    );
  };
}

function ofLength(length: number, value: unknown, type: DataType): unknown {
  if ((value as { readonly length?: number }).length === length) return value;
  throw unfit(value, type);
}

function only(kinds: readonly string[], value: unknown, type: DataType): unknown {
  if (kinds.includes(typeof value)) return value;
  throw unfit(value, type);
}

function iterable(value: unknown, type: DataType): Iterable<unknown> {
  if (typeof value === "object" && value !== null && Symbol.iterator in value)
    return value as Iterable<unknown>;
  throw unfit(value, type);
}

function unfit(value: unknown, type: DataType): TypeError {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new TypeError(`${type} cannot hold ${text.slice(0, 100)}`);
}

/**
 * Returns a batch of columns.
 *
 * @param columns values of each column of the schema; times are in nanoseconds, so that none loses digits
 * @param placeOf names a row in errors, by its index
 * @throws LanceError InvalidInput, if the type of a column has no such value.
 */
export function batchOf(
  arrow: Arrow,
  schema: Schema,
  columns: readonly (readonly unknown[])[],
  placeOf?: (row: number) => string,
): RecordBatch {
  const children = schema.fields.map(
    ({ name, type }, at) => fittingVector(arrow, name, columns[at] ?? [], type, placeOf).data[0] as never,
  );
  const length = columns[0]?.length ?? 0;
  const struct = arrow.makeData({ type: new arrow.Struct(schema.fields), length, nullCount: 0, children });
  return new arrow.RecordBatch(schema, struct);
}
