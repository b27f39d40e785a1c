import type { DataType } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** Type of the values of a column. */
interface CsvType {
  /** Whether a text, which is not empty, is a value of the type. */
  matches(text: string): boolean;
  parse(text: string): unknown;
  arrow(arrow: Arrow, dimension: number): DataType;
}

const INTEGER = /^[-+]?(?:0|[1-9]\d{0,17})$/;
const NUMBER = /^[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
const TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?)?$/;

/** The types, the narrowest first; everything is a text. */
const TYPES = {
  integer: {
    matches: (text) => INTEGER.test(text),
    parse: (text) => BigInt(text.replace("+", "")),
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
    matches: (text) => TIME.test(text) && !Number.isNaN(millisOf(text)),
    parse: millisOf,
    arrow: (arrow) => new arrow.TimestampMillisecond(),
  },
  vector: {
    matches: (text) => numbersOf(text) !== undefined,
    parse: numbersOf,
    arrow: (arrow, dimension) =>
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
  }));
  return {
    add(row) {
      for (const [at, state] of states.entries()) {
        const text = row[at]?.trim() ?? "";
        if (text === "") continue;
        state.hasValues = true;
        while (!TYPES[state.candidates[0] as TypeName].matches(text)) state.candidates.shift();
        if (state.candidates[0] !== "vector") continue;
        const { length } = numbersOf(text) as number[];
        state.dimension ??= length;
        if (state.dimension !== length) state.candidates = ["text"];
      }
    },
    columns: () =>
      states.map(({ name, candidates: [first = "text"], hasValues, dimension = 0 }) => ({
        name,
        type: hasValues ? first : "text",
        dimension,
      })),
  };
}

/** Returns the Arrow type of a column. */
export function arrowType(arrow: Arrow, { type, dimension }: CsvColumn): DataType {
  return TYPES[type].arrow(arrow, dimension);
}

/** Returns a value of a column; an empty one is null. */
export function parseValue({ type }: CsvColumn, text = ""): unknown {
  if (type === "text") return text === "" ? null : text;
  const trimmed = text.trim();
  return trimmed === "" ? null : TYPES[type].parse(trimmed);
}

/** A time without a zone is one in UTC. */
function millisOf(text: string): number {
  const hasZone = /(?:Z|[-+]\d\d:?\d\d)$/.test(text.slice(10));
  const isDate = text.length === 10;
  return Date.parse(hasZone || isDate ? text.replace(" ", "T") : `${text.replace(" ", "T")}Z`);
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
