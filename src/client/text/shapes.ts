import type { DataType } from "apache-arrow";
import { NumberText } from "../../arrow/rows/json-text.ts";
import { MIXED_TIMES, timeOfText, timeType } from "../../arrow/rows/times.ts";
import type { Cell } from "./csv.ts";
import { type JsonValue, parseJson } from "./json-text.ts";
import {
  factsOf,
  isNumberText,
  mergeFacts,
  NOT_FINITE_FACTS,
  type NumberFacts,
  notFinite,
} from "./numbers.ts";

type Arrow = typeof import("apache-arrow");

/** Common type of the values of a column. */
export type Shape =
  | { readonly kind: "null" | "boolean" | "mixed" }
  /** @property isJson whether one of the texts is JSON of something else. */
  | { readonly kind: "text"; readonly isJson: boolean }
  | { readonly kind: "number"; readonly facts: NumberFacts }
  | { readonly kind: "date" }
  | { readonly kind: "time"; readonly fraction: number; readonly hasZone: boolean }
  /** @property length the number of items in each list; undefined if it differs. */
  | { readonly kind: "list"; readonly item: Shape; readonly length: number | undefined }
  | { readonly kind: "struct"; readonly members: ReadonlyMap<string, Shape> };

const NULL: Shape = { kind: "null" };
const BOOLEAN: Shape = { kind: "boolean" };
const MIXED: Shape = { kind: "mixed" };
const DATE: Shape = { kind: "date" };
const PLAIN_TEXT: Shape = { kind: "text", isJson: false };
const JSON_TEXT: Shape = { kind: "text", isJson: true };
const NOT_A_NUMBER: Shape = { kind: "number", facts: NOT_FINITE_FACTS };
/** Digits of a decimal of 128 bits. */
const DECIMAL_DIGITS = 38;

/**
 * Returns the narrowest shape that a cell of CSV has, too; cells without anything but spaces have every shape.
 *
 * @throws Error for a time without a zone beside times with one.
 */
export function widenedByCell(shape: Shape = NULL, cell: Cell | undefined): Shape {
  if (cell === null || cell === undefined || shape.kind === "mixed" || shape.kind === "text") return shape;
  const text = cell.trim();
  if (text === "") return shape;
  const merged = merge(shape, shapeOfCell(text));
  // Everything is a text, and lists are more only if they have equally many numbers.
  const isPlain = merged.kind === "mixed" || (merged.kind === "list" && merged.length === undefined);
  return isPlain ? PLAIN_TEXT : merged;
}

function shapeOfCell(text: string): Shape {
  if (isNumberText(text)) return { kind: "number", facts: factsOf(text) };
  if (/^(?:true|false)$/i.test(text)) return BOOLEAN;
  if (text.startsWith("[")) return vectorOfCell(text) ?? PLAIN_TEXT;
  return notFinite(text) === undefined ? (shapeOfTime(text) ?? PLAIN_TEXT) : NOT_A_NUMBER;
}

/** Only lists of numbers are more than texts. */
function vectorOfCell(text: string): Shape | undefined {
  const shape = shapeOfJson(jsonOf(text) ?? null, true);
  if (shape.kind !== "list" || shape.item.kind !== "number" || shape.length === 0) return undefined;
  return shape.item.facts.isDouble && shape.item.facts.hasFinite ? shape : undefined;
}

function shapeOfTime(text: string): Shape | undefined {
  const time = timeOfText(text);
  if (time === undefined) return undefined;
  const { fraction, hasZone, isDate } = time;
  return isDate ? DATE : { kind: "time", fraction, hasZone };
}

/**
 * Returns the narrowest shape that a value of JSON has, too.
 *
 * @throws Error for a time without a zone beside times with one, and for texts that could be taken for other values of the column.
 */
export function widenedByJson(shape: Shape = NULL, value: JsonValue | undefined): Shape {
  if (value === null || value === undefined) return shape;
  if (typeof value === "string" && shape.kind === "text" && (shape.isJson || !isJson(value))) return shape;
  return merge(shape, shapeOfJson(value, true));
}

/** @param isColumn whether it is the value of a column, and not within a list or an object, where times are texts */
function shapeOfJson(value: JsonValue, isColumn: boolean): Shape {
  if (value === null) return NULL;
  if (value instanceof NumberText) return { kind: "number", facts: factsOf(value.text) };
  if (typeof value === "boolean") return BOOLEAN;
  if (typeof value === "string") {
    if (isJson(value)) return JSON_TEXT;
    if (notFinite(value) !== undefined) return NOT_A_NUMBER;
    return (isColumn ? shapeOfTime(value) : undefined) ?? PLAIN_TEXT;
  }
  const within = (each: JsonValue) => shapeOfJson(each, false);
  if (value instanceof Map)
    return { kind: "struct", members: new Map([...value].map(([name, each]) => [name, within(each)])) };
  const items = value as readonly JsonValue[];
  return { kind: "list", item: items.map(within).reduce(merge, NULL), length: items.length };
}

/** Whether a text would be taken for something else among values of several kinds, which become texts of JSON. */
function isJson(text: string): boolean {
  if (/^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/.test(text)) return true;
  return /^[{["]/.test(text) && jsonOf(text) !== undefined;
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function merge(a: Shape, b: Shape): Shape {
  if (a.kind === "null") return b;
  if (b.kind === "null") return a;
  if (a.kind === "number" && b.kind === "number")
    return { kind: "number", facts: mergeFacts(a.facts, b.facts) };
  if (a.kind === "text" && b.kind === "text") return a.isJson ? a : b;
  if (a.kind === "list" && b.kind === "list")
    return {
      kind: "list",
      item: merge(a.item, b.item),
      length: a.length === b.length ? a.length : undefined,
    };
  if (a.kind === "struct" && b.kind === "struct") {
    const names = new Set([...a.members.keys(), ...b.members.keys()]);
    const merged = (name: string) => merge(a.members.get(name) ?? NULL, b.members.get(name) ?? NULL);
    return { kind: "struct", members: new Map([...names].map((name) => [name, merged(name)])) };
  }
  if (isTime(a) && isTime(b)) return mergeTimes(a, b);
  if (a.kind === b.kind) return a;
  // Texts of times and of numbers that are none stay what they are.
  if (isWritten(a) && isWritten(b)) return a.kind === "text" ? a : b.kind === "text" ? b : PLAIN_TEXT;
  const text = a.kind === "text" ? a : b;
  if (text.kind !== "text" || !text.isJson) return MIXED;
  throw new Error(
    "the column has texts that are JSON beside values of other kinds, from which nothing would tell them; choose the type of the column",
  );
}

/** Whether all values are texts, of which JSON has no other form. */
function isWritten(shape: Shape): boolean {
  return shape.kind === "text" || isTime(shape) || (shape.kind === "number" && !shape.facts.hasFinite);
}

type Time = Extract<Shape, { kind: "time" | "date" }>;

function isTime(shape: Shape): shape is Time {
  return shape.kind === "time" || shape.kind === "date";
}

function mergeTimes(a: Time, b: Time): Shape {
  const [first, second] = a.kind === "time" ? [a, b] : [b, a];
  if (first.kind === "date") return first;
  if (first.hasZone !== (second.kind === "time" && second.hasZone)) throw new Error(MIXED_TIMES);
  return second.kind === "time" && second.fraction > first.fraction ? second : first;
}

/** Returns the Arrow type of a shape; values of several kinds become texts of JSON. */
export function typeOfShape(arrow: Arrow, shape: Shape, isColumn = true): DataType {
  const { Field } = arrow;
  switch (shape.kind) {
    case "boolean":
      return new arrow.Bool();
    case "number":
      return typeOfNumbers(arrow, shape.facts);
    case "date":
      return new arrow.DateDay();
    case "time":
      return timeType(arrow, shape.fraction, shape.hasZone ? "UTC" : null);
    case "list": {
      const { item, length } = shape;
      const vector = isColumn && item.kind === "number" ? numberOfVectors(arrow, item.facts) : undefined;
      // The library's builders lose count of vectors inside of lists and structs that are null.
      if (vector !== undefined && length !== undefined && length > 0)
        return new arrow.FixedSizeList(length, new Field("item", vector, true));
      return new arrow.List(new Field("item", typeOfShape(arrow, item, false), true));
    }
    case "struct":
      if (shape.members.size === 0) return new arrow.Utf8();
      return new arrow.Struct(
        [...shape.members].map(([name, each]) => new Field(name, typeOfShape(arrow, each, false), true)),
      );
    default:
      return new arrow.Utf8();
  }
}

/** Returns the narrowest type that holds each number exactly: a text, if no type of numbers does. */
function typeOfNumbers(arrow: Arrow, facts: NumberFacts): DataType {
  const { whole, scale } = facts;
  if (facts.isInt64) return new arrow.Int64();
  if (facts.isUint64) return new arrow.Uint64();
  if (!facts.hasFinite) return new arrow.Utf8();
  if (facts.isDouble && !facts.isInteger) return new arrow.Float64();
  return facts.isDecimal && whole + scale <= DECIMAL_DIGITS
    ? new arrow.Decimal(scale, DECIMAL_DIGITS)
    : new arrow.Utf8();
}

function numberOfVectors(arrow: Arrow, { hasFinite, isSingle, isDouble }: NumberFacts): DataType | undefined {
  // Nothing but words such as "inf" may as well be texts, which keep their letters.
  if (!hasFinite) return undefined;
  if (isSingle) return new arrow.Float32();
  return isDouble ? new arrow.Float64() : undefined;
}
