import type { ArrowField } from "../../arrow/schema.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { SqlSearch } from "../sql-engine.ts";
import { type Target, targetAt } from "../table-names.ts";
import { TokenReader } from "../writes/tokens.ts";
import { isExactNumber, positionOf, type TreeNode } from "./tree.ts";

/** A search that a statement has behind FROM. */
export interface NamedSearch {
  readonly target: Target;
  readonly version: bigint | undefined;
  readonly branch: string | undefined;
  readonly search: SqlSearch;
}

/** An argument, as far as the rest of the statement goes. */
type Value = string | number | boolean | readonly number[];

/** Reads an argument. @throws LanceError for another one */
type Read<T extends Value> = (argument: TreeNode, what: string) => T;

/** Values that are read of the arguments of a search. */
type Arguments = Partial<
  Record<(typeof TABLE | typeof VECTOR | typeof WORDS)[number], Value> & Record<string, Value>
>;

/** Arguments by their places. */
const TABLE = ["table"] as const;
const VECTOR = ["vector_column", "query_vector"] as const;
const WORDS = ["text_column", "query"] as const;

const READ_ALL: Readonly<Record<string, Read<Value>>> = {
  table: text,
  vector_column: text,
  query_vector: vector,
  text_column: text,
  query: text,
  k: count,
  prefilter: flag,
  filter: text,
  version: count,
  branch: text,
};
const READ_VECTOR: Readonly<Record<string, Read<Value>>> = {
  use_index: flag,
  nprobs: count,
  nprobes: count,
  refine_factor: count,
  distance_type: text,
};

/** The functions that search, by their names: the arguments by place, and the others by name. They are those of DuckDB's extension for Lance. */
const SEARCHES: Readonly<Record<string, { readonly places: readonly string[]; readonly score: string }>> = {
  lance_vector_search: { places: [...TABLE, ...VECTOR], score: "_distance" },
  lance_fts: { places: [...TABLE, ...WORDS], score: "_score" },
  lance_hybrid_search: { places: [...TABLE, ...VECTOR, ...WORDS], score: "_relevance_score" },
};

/** Number of rows of a search that names none. */
const DEFAULT_ROWS = 10;

/** Largest whole number of a request. */
const MAX_COUNT = 2 ** 31 - 1;

/** Whether a part of a statement is a search. */
export function isSearch(node: TreeNode): boolean {
  if (node["type"] !== "TABLE_FUNCTION") return false;
  const { function_name: name, schema, catalog } = node["function"] as TreeNode;
  const isPlain = [schema, catalog].every((each) => each === "" || each === undefined);
  return isPlain && searchNamed(name) !== undefined;
}

function searchNamed(name: unknown) {
  const key = String(name).toLowerCase();
  return Object.hasOwn(SEARCHES, key) ? SEARCHES[key] : undefined;
}

/** Reads a search. @throws LanceError InvalidInput, Unsupported for other arguments than those that a search has, with the position */
export function readSearch(node: TreeNode): NamedSearch {
  const call = node["function"] as TreeNode;
  const name = String(call["function_name"]).toLowerCase();
  const { places, score } = searchNamed(name) as (typeof SEARCHES)[string];
  const readers = places.includes("query_vector") ? { ...READ_ALL, ...READ_VECTOR } : READ_ALL;
  const values: Arguments = {};
  const isPlainCall = call["distinct"] !== true && call["filter"] === null && !hasOrder(call);
  if (!isPlainCall || node["with_ordinality"] === "WITH_ORDINALITY")
    throw new LanceError(
      "Unsupported",
      `${name} takes arguments alone, without DISTINCT, ORDER BY, FILTER and WITH ORDINALITY${positionOf(node)}`,
    );
  for (const [at, child] of (call["children"] as readonly TreeNode[]).entries()) {
    const [named, argument] = namedArgument(child);
    const key = named ?? places[at];
    const read = key !== undefined && Object.hasOwn(readers, key) ? readers[key] : undefined;
    if (key === undefined || read === undefined || (named !== undefined && places.includes(named)))
      throw new LanceError(
        "InvalidInput",
        `${name} has no argument ${named === undefined ? `at place ${at + 1}` : `"${named}"`}; it takes ${usageOf(places, readers)}${positionOf(child)}`,
      );
    if (values[key] !== undefined)
      throw new LanceError("InvalidInput", `${name} has the argument "${key}" twice${positionOf(child)}`);
    values[key] = read(argument, `the argument "${key}" of ${name}`);
  }
  const missing = places.find((key) => values[key] === undefined);
  if (missing !== undefined)
    throw new LanceError(
      "InvalidInput",
      `${name} needs the argument "${missing}"; it takes ${usageOf(places, readers)}${positionOf(node)}`,
    );
  return { ...stateOf(values), target: targetIn(values["table"] as string), search: searchOf(values, score) };
}

function hasOrder({ order_bys: order }: TreeNode): boolean {
  return ((order as TreeNode | null)?.["orders"] as readonly unknown[] | undefined)?.length !== 0;
}

function usageOf(places: readonly string[], readers: Readonly<Record<string, unknown>>): string {
  const named = Object.keys(readers).filter((key) => !places.includes(key) && !(key in TAKEN_BY_PLACE));
  return `(${places.join(", ")}), and by name ${named.join(", ")}`;
}

/** Arguments that some search takes by place. */
const TAKEN_BY_PLACE = Object.fromEntries([...TABLE, ...VECTOR, ...WORDS].map((key) => [key, true]));

/** Returns the name of an argument, as `k = 5`, `k := 5` and `k => 5` write it, and the argument. */
function namedArgument(child: TreeNode): readonly [name: string | undefined, argument: TreeNode] {
  const left = child["left"] as TreeNode | undefined;
  if (child["type"] === "COMPARE_EQUAL" && left?.["class"] === "COLUMN_REF") {
    const names = left["column_names"] as readonly string[];
    return [names.join(".").toLowerCase(), child["right"] as TreeNode];
  }
  const alias = String(child["alias"] ?? "");
  return [alias === "" ? undefined : alias.toLowerCase(), child];
}

function stateOf(values: Arguments): Pick<NamedSearch, "version" | "branch"> {
  const { version, branch } = values;
  return {
    version: version === undefined ? undefined : BigInt(version as number),
    branch: branch as string | undefined,
  };
}

/** Reads the name of a table as statements write it. */
function targetIn(name: string): Target {
  const tokens = new TokenReader(name);
  const target = targetAt(tokens);
  if (tokens.next.kind !== "end") throw tokens.unexpected("the end of the name");
  return target;
}

function searchOf(values: Arguments, score: string): SqlSearch {
  const {
    k,
    prefilter,
    filter,
    use_index: usesIndex,
    nprobs,
    nprobes = nprobs,
    refine_factor,
    distance_type,
  } = values;
  const all = {
    ...{ score, rows: (k ?? DEFAULT_ROWS) as number, isPrefilter: prefilter === true },
    filter: filter as string | undefined,
    vector: undefined as SqlSearch["vector"],
    words: undefined as SqlSearch["words"],
  };
  if (values["query_vector"] !== undefined)
    all.vector = {
      column: values["vector_column"] as string,
      values: values["query_vector"] as readonly number[],
      usesIndex: usesIndex !== false,
      probes: nprobes as number | undefined,
      refineFactor: refine_factor as number | undefined,
      distanceType: distance_type as string | undefined,
    };
  if (values["query"] !== undefined)
    all.words = { column: values["text_column"] as string, query: values["query"] as string };
  return all;
}

/** Returns the column that a search adds to those of its table. */
export function scoreField({ score }: SqlSearch): ArrowField {
  const type = { name: "float", bits: 32 } as const;
  return { name: score, nullable: true, type, children: [], dictionary: undefined, metadata: {} };
}

function refusedArgument(argument: TreeNode, what: string, wanted: string): LanceError {
  if (argument["class"] === "PARAMETER")
    return new LanceError("Unsupported", `${what} cannot be a parameter${positionOf(argument)}`);
  return new LanceError("InvalidInput", `${what} is ${wanted}${positionOf(argument)}`);
}

function constantOf(argument: TreeNode): {
  readonly id: unknown;
  readonly value: unknown;
  readonly scale: number;
} {
  if (argument["class"] !== "CONSTANT") return { id: undefined, value: undefined, scale: 0 };
  const { type, is_null: isNull, value } = argument["value"] as TreeNode;
  const { id, type_info: info } = type as TreeNode;
  return {
    id,
    value: isNull === true ? undefined : value,
    scale: Number((info as TreeNode | null)?.["scale"] ?? 0),
  };
}

function text(argument: TreeNode, what: string): string {
  const { id, value } = constantOf(argument);
  if (id === "VARCHAR" && typeof value === "string" && value !== "") return value;
  throw refusedArgument(argument, what, "a text that is not empty");
}

function count(argument: TreeNode, what: string): number {
  const { id, value } = constantOf(argument);
  if (id === "INTEGER" && typeof value === "number" && value > 0 && value <= MAX_COUNT) return value;
  throw refusedArgument(argument, what, `a whole number from 1 to ${MAX_COUNT}`);
}

/** Reads `true` and `false`, which DuckDB's parser makes casts of texts. */
function flag(argument: TreeNode, what: string): boolean {
  const isCast = argument["class"] === "CAST" && (argument["cast_type"] as TreeNode)["id"] === "BOOLEAN";
  const { value } = constantOf(isCast ? (argument["child"] as TreeNode) : argument);
  if (isCast && (value === "t" || value === "f")) return value === "t";
  throw refusedArgument(argument, what, "true or false");
}

/** Reads a list or an array of numbers, also of a text, and with a cast. */
function vector(argument: TreeNode, what: string): readonly number[] {
  const values = numbersOf(argument, what);
  if (values.every((value) => Number.isFinite(Math.fround(value)))) return values;
  throw new LanceError(
    "InvalidInput",
    `${what} has a number that is not one of a 32-bit float${positionOf(argument)}`,
  );
}

function numbersOf(argument: TreeNode, what: string): readonly number[] {
  const wanted = "a list of numbers, such as [0.5, 1, 2]";
  if (argument["class"] === "CAST" && argument["try_cast"] !== true) {
    const { id, type_info: info } = argument["cast_type"] as TreeNode;
    const { child_type: child, size } = (info ?? {}) as Record<string, TreeNode>;
    const isVector = (id === "ARRAY" || id === "LIST") && NUMBERS.has(child?.["id"]);
    if (!isVector) throw refusedArgument(argument, what, wanted);
    const inner = argument["child"] as TreeNode;
    const written = constantOf(inner);
    const values = written.id === "VARCHAR" ? numbersIn(written.value) : numbersOf(inner, what);
    if (values === undefined) throw refusedArgument(argument, what, wanted);
    if (id === "ARRAY" && Number(size) !== values.length)
      throw refusedArgument(argument, what, `cast to ${String(size)} numbers, and has ${values.length}`);
    return values;
  }
  const { class: kind, function_name: name, children } = argument;
  if (kind !== "FUNCTION" || (name !== "list_value" && name !== "array_value"))
    throw refusedArgument(argument, what, wanted);
  const values = (children as readonly TreeNode[]).map(numberOf);
  if (values.length === 0 || values.includes(undefined)) throw refusedArgument(argument, what, wanted);
  return values as number[];
}

/** Types of the members of a vector. */
const NUMBERS: ReadonlySet<unknown> = new Set(["FLOAT", "DOUBLE"]);

/** Reads the text of a list; undefined for another text. */
function numbersIn(value: unknown): readonly number[] | undefined {
  try {
    const read: unknown = JSON.parse(String(value));
    const isList = Array.isArray(read) && read.length > 0 && read.every((each) => typeof each === "number");
    return isList ? read : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a number, also of more digits than a float has, which are rounded as a cast would. */
function numberOf(node: TreeNode): number | undefined {
  const { value, scale } = constantOf(node);
  const digits = digitsOf(value);
  return digits === undefined ? undefined : Number(scale === 0 ? digits : `${digits}e-${scale}`);
}

/** Returns the text of a number; undefined for another constant. */
function digitsOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  if (isExactNumber(value)) return String((value as { readonly rawJSON: string }).rawJSON);
  if (typeof value !== "object" || value === null) return undefined;
  // Two halves of 64 bits.
  const { upper, lower } = value as Record<string, unknown>;
  const [high, low] = [digitsOf(upper), digitsOf(lower)];
  return high === undefined || low === undefined ? undefined : String((BigInt(high) << 64n) + BigInt(low));
}
