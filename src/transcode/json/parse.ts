import { LanceError } from "../../namespace/errors.ts";
import { jsonErrorPosition } from "./syntax.ts";

/** Maximum length of a 64-bit integer, in characters, including the sign. */
const MAX_INT64_LENGTH = 20;

/** Longest text in which the position of an error is searched. */
const MAX_LOCATED_LENGTH = 256 * 1024;

/** Reading a value exactly takes about 2 µs. */
const MAX_EXACT_VALUES = 20_000;

const DIGITS = /^-?[0-9]+$/;

/**
 * Parses JSON.
 *
 * @param what name of the text, for the error.
 * @throws LanceError InvalidInput with the position of the first character that does not fit.
 */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new LanceError("InvalidInput", `${what} is not valid JSON${placeOfError(text)}`);
  }
}

/** Returns the position at which a text stops being JSON, unless the text is too long to search. */
function placeOfError(text: string): string {
  if (text.length > MAX_LOCATED_LENGTH) return "";
  const position = jsonErrorPosition(text);
  const before = text.slice(0, position);
  const line = before.split("\n").length;
  const column = position - before.lastIndexOf("\n");
  return ` at position ${position} (line ${line}, column ${column})`;
}

/** A long text of JSON that has been parsed in a turn of its own. */
export interface ParsedJson {
  readonly text: string;
  readonly value: unknown;
  /** Upper bound on the number of its values. */
  readonly values: number;
}

/**
 * Parses JSON that is known to be valid, with integers beyond 2^53 as bigint, exact to the last digit.
 * It costs up to a hundred times more than {@link parseJson}.
 *
 * @param values upper bound on the number of its values. Default: the text is short.
 * @throws LanceError InvalidInput for a text of many values
 */
export function parseRequestExactly(text: string, values = 0): unknown {
  if (values > MAX_EXACT_VALUES) {
    throw new LanceError(
      "InvalidInput",
      `request body has an integer of more than 53 bits, and more than ${MAX_EXACT_VALUES} values`,
    );
  }
  return parseJsonExactly(text);
}

/** Parses as {@link parseRequestExactly}, for a text of any size from an upstream. */
export function parseJsonExactly(text: string): unknown {
  try {
    return JSON.parse(text, exactly as (key: string, value: unknown) => unknown);
  } catch (cause) {
    // Only the engine's stack can fail here: it calls a reviver recursively.
    throw new LanceError("InvalidInput", "request body is nested too deeply", { cause });
  }
}

function exactly(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const { source } = context;
  if (source === undefined || source.length > MAX_INT64_LENGTH || !DIGITS.test(source)) return value;
  return BigInt(source);
}
