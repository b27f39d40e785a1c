import type { Vector } from "apache-arrow";
import * as arrow from "apache-arrow";
import { NumberText } from "../../arrow/rows/json-text.ts";
import { chunkedReader, type ItemAt, itemReader } from "../../arrow/rows/row-reader.ts";
import { shortest, TEXT_FORMS, textOfValue } from "../../arrow/rows/row-texts.ts";

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

/** Most bars that a vector is drawn with. */
const MOST_BARS = 24;

/**
 * Returns the heights of the bars that draw a vector, from -1 to 1: the largest value has the full height. Vectors with
 * more numbers than bars have the mean of neighbours.
 */
export function barsOf(values: ArrayLike<number>): number[] {
  const count = Math.min(values.length, MOST_BARS);
  const means = Array.from({ length: count }, (_, bar) => {
    const [start, end] = [bar, bar + 1].map((edge) => Math.floor((edge * values.length) / count));
    let sum = 0;
    for (let at = start as number; at < (end as number); at++) sum += values[at] as number;
    return sum / ((end as number) - (start as number));
  });
  const largest = Math.max(...means.map(Math.abs));
  return means.map((mean) => (Number.isFinite(mean / largest) ? mean / largest : 0));
}

/** First bytes of images that browsers show, with the place where they are. */
const MAGIC: readonly (readonly [type: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
  ["image/avif", 4, "ftypavif"],
];

/** Returns the media type of bytes that are an image; SVG, which can have scripts, does not count. */
function imageTypeOf(bytes: Uint8Array): string | undefined {
  const found = MAGIC.find(([, at, text]) =>
    [...text].every((character, index) => bytes[at + index] === character.charCodeAt(0)),
  );
  return found?.[0];
}
