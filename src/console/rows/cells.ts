import type { DataType } from "apache-arrow";
import { decimalText } from "../../client/text/decimal-text.ts";
import { formatTime } from "../shell/format.ts";
import { imageTypeOf } from "./image-type.ts";

/** A value as it is shown. */
export type Cell =
  | { readonly kind: "null" }
  | { readonly kind: "text" | "number" | "json"; readonly text: string }
  | { readonly kind: "time"; readonly text: string; readonly iso: string }
  | { readonly kind: "vector"; readonly values: ArrayLike<number> }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly image: string | undefined };

/** Fewest numbers in a list that is drawn as a vector. */
const SMALLEST_VECTOR = 4;

type Show = (value: never, type: DataType) => Cell;

/** How the values of a type are shown, by the number of the type in Arrow. */
const BY_TYPE: Readonly<Record<number, Show>> = {
  // Int and Float
  2: (value: number | bigint) => ({ kind: "number", text: String(value) }),
  3: (value: number) => ({ kind: "number", text: shortNumber(value) }),
  // Binary, FixedSizeBinary and LargeBinary
  4: bytesCell,
  15: bytesCell,
  19: bytesCell,
  // Utf8 and LargeUtf8
  5: (value: string) => ({ kind: "text", text: value }),
  20: (value: string) => ({ kind: "text", text: value }),
  7: (value: Uint32Array, type) => ({ kind: "number", text: decimalText(value, scaleOf(type)) }),
  // Date and Timestamp
  8: timeCell,
  10: timeCell,
  // List and FixedSizeList
  12: listCell,
  16: listCell,
};

/** Returns a value of an Arrow column as it is shown. */
export function cellOf(value: unknown, type: DataType): Cell {
  if (value === null || value === undefined) return { kind: "null" };
  const show = BY_TYPE[type.typeId];
  return show === undefined ? otherCell(value) : show(value as never, type);
}

function bytesCell(bytes: Uint8Array): Cell {
  return { kind: "bytes", bytes, image: imageTypeOf(bytes) };
}

function timeCell(millis: number | bigint): Cell {
  const date = new Date(Number(millis));
  if (Number.isNaN(date.getTime())) return { kind: "text", text: String(millis) };
  return { kind: "time", text: formatTime(date.getTime()), iso: date.toISOString() };
}

function listCell(value: { toArray(): ArrayLike<unknown> }): Cell {
  const items = value.toArray();
  const isVector = items.length >= SMALLEST_VECTOR && typeof items[0] === "number";
  return isVector ? { kind: "vector", values: items as ArrayLike<number> } : otherCell(value);
}

function otherCell(value: unknown): Cell {
  if (typeof value === "object") return { kind: "json", text: JSON.stringify(value, plainValue) };
  return { kind: "text", text: String(value) };
}

/** Converts what JSON does not have. */
function plainValue(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Uint8Array ? `${value.byteLength} bytes` : value;
}

/** Writes a number with as many digits as people compare. */
export function shortNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
}

function scaleOf(type: DataType): number {
  return (type as DataType & { readonly scale: number }).scale;
}
