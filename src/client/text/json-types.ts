import type { DataType } from "apache-arrow";
import { isLongNumber } from "./fit.ts";
import { fractionOf, nanosOfTime, timeType } from "./times.ts";

type Arrow = typeof import("apache-arrow");

/** Common type of the values of a column. */
export type Shape =
  | { readonly kind: "null" | "boolean" | "integer" | "number" | "text" | "mixed" }
  | { readonly kind: "time"; readonly fraction: number }
  /** @property length the number of items in each list; undefined if it differs. */
  | { readonly kind: "list"; readonly item: Shape; readonly length: number | undefined }
  | { readonly kind: "struct"; readonly members: ReadonlyMap<string, Shape> };

/** Returns the shape of a value of JSON. */
function shapeOf(value: unknown): Shape {
  if (value === null || value === undefined) return { kind: "null" };
  if (Array.isArray(value)) {
    const item = value.map(shapeOf).reduce(mergeShapes, { kind: "null" });
    return { kind: "list", item, length: value.length };
  }
  switch (typeof value) {
    case "object":
      if (isLongNumber(value)) return { kind: "number" };
      return {
        kind: "struct",
        members: new Map(Object.entries(value).map(([name, each]) => [name, shapeOf(each)])),
      };
    case "boolean":
      return { kind: "boolean" };
    case "bigint":
      return { kind: BigInt.asIntN(64, value) === value ? "integer" : "number" };
    case "number":
      return { kind: Number.isSafeInteger(value) ? "integer" : "number" };
    default: {
      const text = String(value);
      return nanosOfTime(text) === undefined
        ? { kind: "text" }
        : { kind: "time", fraction: fractionOf(text) };
    }
  }
}

/** Kinds of values that nothing has to be found out about, by the shape that has them already. */
const SURE: Readonly<Partial<Record<Shape["kind"], string>>> = {
  text: "string",
  number: "number",
  boolean: "boolean",
};

/** Returns the narrowest shape that a value has, too. */
export function widened(shape: Shape | undefined, value: unknown): Shape {
  if (shape === undefined) return shapeOf(value);
  if (value === null || shape.kind === "mixed" || SURE[shape.kind] === typeof value) return shape;
  if (shape.kind === "integer" && Number.isSafeInteger(value)) return shape;
  return mergeShapes(shape, shapeOf(value));
}

/** Returns the narrowest shape that the values of two shapes have. */
function mergeShapes(a: Shape, b: Shape): Shape {
  if (a.kind === "null") return b;
  if (b.kind === "null") return a;
  if (a.kind === "time" && b.kind === "time") return a.fraction >= b.fraction ? a : b;
  if (a.kind === "list" && b.kind === "list") {
    return {
      kind: "list",
      item: mergeShapes(a.item, b.item),
      length: a.length === b.length ? a.length : undefined,
    };
  }
  if (a.kind === "struct" && b.kind === "struct") {
    const names = new Set([...a.members.keys(), ...b.members.keys()]);
    const none: Shape = { kind: "null" };
    const merged = (name: string) => mergeShapes(a.members.get(name) ?? none, b.members.get(name) ?? none);
    return { kind: "struct", members: new Map([...names].map((name) => [name, merged(name)])) };
  }
  if (a.kind === b.kind) return a;
  const kinds = new Set([a.kind, b.kind]);
  if (kinds.has("integer") && kinds.has("number")) return { kind: "number" };
  return kinds.has("text") && kinds.has("time") ? { kind: "text" } : { kind: "mixed" };
}

/** Returns the Arrow type of a shape; values of several kinds become texts of JSON. Times are recognized in columns alone. */
export function typeOfShape(arrow: Arrow, shape: Shape, isColumn = true): DataType {
  const { Field } = arrow;
  switch (shape.kind) {
    case "boolean":
      return new arrow.Bool();
    case "integer":
      return new arrow.Int64();
    case "number":
      return new arrow.Float64();
    case "time":
      return isColumn ? timeType(arrow, shape.fraction) : new arrow.Utf8();
    case "list": {
      const { item, length } = shape;
      // The library's builders lose count of vectors inside of lists and structs that are null.
      if (
        isColumn &&
        length !== undefined &&
        length > 0 &&
        (item.kind === "integer" || item.kind === "number")
      )
        return new arrow.FixedSizeList(length, new Field("item", new arrow.Float32(), true));
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
