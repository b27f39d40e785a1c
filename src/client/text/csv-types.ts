import type { DataType } from "apache-arrow";
import { fractionOf, nanosOfTime, timeType } from "./times.ts";

type Arrow = typeof import("apache-arrow");

/** Type of the values of a column. */
interface CsvType {
  /** Whether a text, which is not empty, is a value of the type. */
  matches(text: string): boolean;
  parse(text: string): unknown;
  arrow(arrow: Arrow, column: CsvColumn): DataType;
}

const INTEGER = /^[-+]?(?:0|[1-9]\d{0,18})$/;
const NUMBER = /^[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;

/** The types, the narrowest first; everything is a text. */
const TYPES = {
  integer: {
    matches: (text) => INTEGER.test(text) && BigInt.asIntN(64, integerOf(text)) === integerOf(text),
    parse: integerOf,
    arrow: (arrow) => new arrow.Int64(),
  },
  number: {
    matches: (text) => NUMBER.test(text),
    parse: Number,
    arrow: (arrow) => new arrow.Float64(),
  },
  truth: {
    matches: (text) => /^(?:true|false)$/i.test(text),
    parse: (text) => text.toLowerCase() === "true",
    arrow: (arrow) => new arrow.Bool(),
  },
  time: {
    matches: (text) => nanosOfTime(text) !== undefined,
    parse: nanosOfTime,
    arrow: (arrow, { fraction }) => timeType(arrow, fraction),
  },
  vector: {
    matches: (text) => numbersOf(text) !== undefined,
    parse: numbersOf,
    arrow: (arrow, { dimension }) =>
      new arrow.FixedSizeList(dimension, new arrow.Field("item", new arrow.Float32(), true)),
  },
  text: {
    matches: () => true,
    parse: (text) => text,
    arrow: (arrow) => new arrow.Utf8(),
  },
} as const satisfies Readonly<Record<string, CsvType>>;

type TypeName = keyof typeof TYPES;

/** A column of a CSV file. */
export interface CsvColumn {
  readonly name: string;
  readonly type: TypeName;
  /** Numbers in each vector. */
  readonly dimension: number;
  /** Digits of the fraction of a second in times. */
  readonly fraction: number;
}

/** Finds out the types of columns from all their values: the narrowest type that every value has. */
export interface TypeGuess {
  add(row: readonly string[]): void;
  columns(): readonly CsvColumn[];
}

/** Creates a guess for columns by their names. A column without values is one of texts. */
export function createTypeGuess(names: readonly string[]): TypeGuess {
  const states = names.map((name) => ({
    name,
    candidates: Object.keys(TYPES) as TypeName[],
    hasValues: false,
    dimension: undefined as number | undefined,
    fraction: 0,
  }));
  return {
    add(row) {
      for (const [at, state] of states.entries()) {
        const text = row[at]?.trim() ?? "";
        if (text === "") continue;
        state.hasValues = true;
        while (!TYPES[state.candidates[0] as TypeName].matches(text)) state.candidates.shift();
        if (state.candidates[0] === "time") state.fraction = Math.max(state.fraction, fractionOf(text));
        if (state.candidates[0] !== "vector") continue;
        const { length } = numbersOf(text) as number[];
        state.dimension ??= length;
        if (state.dimension !== length) state.candidates = ["text"];
      }
    },
    columns: () =>
      states.map(({ name, candidates: [first = "text"], hasValues, dimension = 0, fraction }) => ({
        ...{ name, dimension, fraction },
        type: hasValues ? first : "text",
      })),
  };
}

/** Returns the Arrow type of a column. */
export function arrowType(arrow: Arrow, column: CsvColumn): DataType {
  return TYPES[column.type].arrow(arrow, column);
}

/** Returns a value of a column, a time in nanoseconds; an empty one is null. */
export function parseValue({ type }: CsvColumn, text = ""): unknown {
  if (type === "text") return text === "" ? null : text;
  const trimmed = text.trim();
  return trimmed === "" ? null : TYPES[type].parse(trimmed);
}

function integerOf(text: string): bigint {
  return BigInt(text.replace("+", ""));
}

function numbersOf(text: string): number[] | undefined {
  if (!text.startsWith("[") || !text.endsWith("]")) return undefined;
  try {
    const values: unknown = JSON.parse(text);
    const isVector =
      Array.isArray(values) && values.length > 0 && values.every((each) => typeof each === "number");
    return isVector ? values : undefined;
  } catch {
    return undefined;
  }
}
