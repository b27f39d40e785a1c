import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { LanceError } from "../../../../namespace/errors.ts";
import { LANCE_TYPE_NAMES } from "../../../../namespace/type-names.ts";
import { decimalProblem, timezoneProblem } from "../rows/check-types.ts";

/**
 * Lance's own names of types by those of the specification. The specification's names have no units; a type without a
 * unit gets the one that the public directory implementation takes.
 */
const LANCE_NAMES = new Map<string, string>([
  ...LANCE_TYPE_NAMES,
  ["boolean", "bool"],
  ["time32", "time32:ms"],
  ["time64", "time64:us"],
  ["timestamp", "timestamp:us:-"],
  ["duration", "duration:us"],
]);

/** Types whose length is a part of them, or says the precision and scale of a decimal. */
const TAKES_LENGTH = /^(?:fixed_size_|decimal:)/;

/** Maximum number of fields of the types that have some. */
const MOST_FIELDS: ReadonlyMap<string, number> = new Map([
  ["struct", Number.POSITIVE_INFINITY],
  ...["list", "large_list", "fixed_size_list", "map"].map((name) => [name, 1] as const),
]);

/** The deepest nesting of types that is accepted. */
const MAX_DEPTH = 64;

/**
 * Returns the engine's form of a data type in a request: an object with `type`, `length` and `fields`, or only the name
 * of the type. The names are those of the specification or Lance's own.
 *
 * @throws LanceError InvalidInput
 */
export function engineType(dataType: Value): string {
  return JSON.stringify(convert(jsonOf(dataType), 0));
}

/** Converts a value to JSON, which has no form for an empty value, NaN or an infinity. */
function jsonOf(dataType: Value): JsonValue {
  try {
    return toJson(ValueSchema, dataType);
  } catch (error) {
    throw new LanceError("InvalidInput", "data_type must have a value", { cause: error });
  }
}

interface EngineType {
  readonly type: string;
  readonly length?: number;
  readonly fields?: readonly {
    readonly name: string;
    readonly type: EngineType;
    readonly nullable: boolean;
  }[];
}

function convert(type: JsonValue | undefined, depth: number): EngineType {
  if (depth > MAX_DEPTH) throw invalid(`types are nested deeper than ${MAX_DEPTH}`);
  if (typeof type === "string") return named(type, undefined, depth);
  if (typeof type !== "object" || type === null || Array.isArray(type)) throw malformed(type);
  const { type: name, logical_type: logical, length, fields = [], ...others } = type;
  const [other] = Object.keys(others);
  if (other !== undefined) throw invalid(`${JSON.stringify(other)} is not a member of a type`);
  const text = typeof logical === "string" ? logical : name;
  const size = length === null ? undefined : length;
  if (
    typeof text !== "string" ||
    !Array.isArray(fields) ||
    !(size === undefined || Number.isSafeInteger(size))
  ) {
    throw malformed(type);
  }
  const result = named(text, size as number | undefined, depth);
  // The engine ignores both where they mean nothing.
  if (size && !TAKES_LENGTH.test(result.type)) throw invalid(`${text} has no length`);
  if (fields.length === 0) return result;
  const most = result.fields === undefined ? (MOST_FIELDS.get(result.type) ?? 0) : 0;
  if (fields.length > most) throw invalid(`${text} has at most ${most} fields, not ${fields.length}`);
  return { ...result, fields: fields.map((field) => convertField(field, depth)) };
}

function convertField(field: JsonValue, depth: number) {
  if (typeof field !== "object" || field === null || Array.isArray(field)) throw malformed(field);
  const { name, type, nullable = true } = field;
  if (typeof name !== "string" || typeof nullable !== "boolean") throw malformed(field);
  return { name, type: convert(type, depth + 1), nullable };
}

function named(text: string, length: number | undefined, depth: number): EngineType {
  const lower = text.trim().toLowerCase();
  const vector = /^fixed_size_list:(.+):(\d+)$/.exec(lower);
  if (vector !== null) {
    if (length !== undefined && length !== Number(vector[2]))
      throw invalid(`${lower} has the length ${vector[2]}, not ${length}`);
    const item = { name: "item", type: convert(vector[1], depth + 1), nullable: true };
    return { type: "fixed_size_list", length: Number(vector[2]), fields: [item] };
  }
  const decimal = /^decimal(32|64|128|256)$/.exec(lower);
  if (decimal !== null) {
    if (length === undefined)
      throw invalid(`${lower} needs a length: its precision times 1000 plus its scale`);
    const [bits, precision, scale] = [Number(decimal[1]), Math.floor(length / 1000), length % 1000];
    refuse(lower, decimalProblem({ bits: bits as 32 | 64 | 128 | 256, precision, scale }));
    return { type: `decimal:${bits}:${precision}:${scale}` };
  }
  // A time zone is the only part of a name in which case matters.
  const parts = /^(timestamp:\w+)(?::(.*))?$/is.exec(text.trim());
  if (parts !== null) refuse(lower, timezoneProblem(parts[2]));
  if (parts !== null) return { type: `${parts[1]?.toLowerCase()}:${parts[2] || "-"}` };
  return { type: LANCE_NAMES.get(lower) ?? lower, ...(length !== undefined && { length }) };
}

/** @param problem why the type cannot be used; undefined if it can */
function refuse(type: string, problem: string | undefined): void {
  if (problem !== undefined) throw invalid(`${type} ${problem}`);
}

function malformed(value: JsonValue | undefined): LanceError {
  return invalid(`${JSON.stringify(value)?.slice(0, 200)} is not a type`);
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", `data_type: ${message}`);
}
