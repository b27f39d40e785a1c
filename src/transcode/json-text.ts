import { LanceError } from "../namespace/errors.ts";
import { jsonErrorPosition } from "./json-syntax.ts";

/** The most characters of a 64-bit integer, sign included. */
const MAX_INT64_LENGTH = 20;

const DIGITS = /^-?[0-9]+$/;

/**
 * Parses JSON.
 *
 * @param what what the text is, for the error.
 * @throws LanceError InvalidInput with the position of the first character that does not fit.
 */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const position = jsonErrorPosition(text);
    const before = text.slice(0, position);
    const line = before.split("\n").length;
    const column = position - before.lastIndexOf("\n");
    throw new LanceError(
      "InvalidInput",
      `${what} is not valid JSON at position ${position} (line ${line}, column ${column})`,
    );
  }
}

/**
 * Parses JSON that is known to be valid, with integers beyond 2^53 as bigint, exact to the last digit.
 * It costs several times more than {@link parseJson}.
 */
export function parseJsonExactly(text: string): unknown {
  try {
    return JSON.parse(text, exactly as (key: string, value: unknown) => unknown);
  } catch (cause) {
    // The only failure left is the engine's stack: a reviver is called recursively.
    throw new LanceError("InvalidInput", "request body is nested too deeply", { cause });
  }
}

function exactly(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const { source } = context;
  if (source === undefined || source.length > MAX_INT64_LENGTH || !DIGITS.test(source)) return value;
  return BigInt(source);
}
