import type { Vector } from "apache-arrow";
import * as arrow from "apache-arrow";
import { NumberText } from "../../arrow/rows/json-text.ts";
import { chunkedReader, type ItemAt, itemReader } from "../../arrow/rows/row-reader.ts";
import { shortest, TEXT_FORMS, textOfValue } from "../../arrow/rows/row-texts.ts";
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

type Show = (column: Vector, index: number) => Cell;

/** How the values of a type are shown, by the number of the type in Arrow. */
const BY_TYPE: Readonly<Record<number, Show>> = {
  // Int, Float and Decimal
  2: numberCell,
  3: numberCell,
  7: numberCell,
  // Binary, FixedSizeBinary and LargeBinary
  4: bytesCell,
  15: bytesCell,
  19: bytesCell,
  // Date and Timestamp
  8: timeCell,
  10: timeCell,
  // List and FixedSizeList
  12: listCell,
  16: listCell,
};

/** Returns a value of an Arrow column as it is shown: with all its digits. */
export function cellOf(column: Vector, index: number): Cell {
  if (!column.isValid(index)) return { kind: "null" };
  return (BY_TYPE[column.type.typeId] ?? otherCell)(column, index);
}

function bytesCell(column: Vector, index: number): Cell {
  const bytes: Uint8Array = column.get(index);
  return { kind: "bytes", bytes, image: imageTypeOf(bytes) };
}

function numberCell(column: Vector, index: number): Cell {
  return { kind: "number", text: textOfValue(contentOf(column, index)) };
}

/** A time with a zone is in UTC, and says so. */
function timeCell(column: Vector, index: number): Cell {
  const iso = String(contentOf(column, index));
  return { kind: "time", text: iso.replace("T", " ").replace("Z", " UTC"), iso };
}

function listCell(column: Vector, index: number): Cell {
  const list = column.get(index) as Vector;
  const { type } = list;
  // The library has numbers of 16 bits as their bits.
  const isHalf = arrow.DataType.isFloat(type) && type.precision === arrow.Precision.HALF;
  const items = isHalf ? Float32Array.from(list as Iterable<number>) : list.toArray();
  const isVector = items.length >= SMALLEST_VECTOR && typeof items[0] === "number";
  return isVector ? { kind: "vector", values: items as ArrayLike<number> } : otherCell(column, index);
}

function otherCell(column: Vector, index: number): Cell {
  const content = contentOf(column, index);
  const isGroup = typeof content === "object" && content !== null && !(content instanceof NumberText);
  return { kind: isGroup ? "json" : "text", text: textOfValue(content) };
}

/** Returns a value as an export has it. */
export function contentOf(column: Vector, index: number): unknown {
  const itemAt = readers.get(column) ?? chunkedReader(column, itemReader(arrow, column.type, TEXT_FORMS));
  readers.set(column, itemAt);
  return itemAt(index);
}

const readers = new WeakMap<Vector, ItemAt>();

/** Writes a number of a vector with all its digits: those of 32 bits have fewer. */
export function vectorNumber(value: number, isSingle: boolean): string {
  return textOfValue(isSingle ? shortest(value) : value);
}
