import { LanceError } from "../../namespace/errors.ts";

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

const WHITE = /[ \t\n\r]*/y;
const PLAIN = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
const HEX = /[0-9a-fA-F]{4}/y;
const ESCAPES = '"\\/bfnrt';

/** Tokens that may come next. After an opening bracket, its closing one may come as well. */
type Expected = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or close" | "end";

/**
 * Returns the position at which a text stops being JSON, in UTF-16 units: the start of the first token that does not
 * fit, or the text's length if it breaks off. The engine's own message has a position only for some failures.
 */
export function jsonErrorPosition(text: string): number {
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    at = after(WHITE, text, at) ?? at;
    if (at >= text.length) return text.length;
    const next = step(at);
    if (next === undefined) return at;
    at = next;
  }

  /** Returns the position after the token, or undefined if it does not fit here. */
  function step(position: number): number | undefined {
    const token = text[position];
    switch (expected) {
      case "end":
        return undefined;
      case "colon":
        expected = "value";
        return token === ":" ? position + 1 : undefined;
      case "comma or close":
        if (token !== ",") return close(token, position);
        expected = open.at(-1) === "{" ? "key" : "value";
        return position + 1;
      case "key or }":
      case "key":
        if (token === "}" && expected === "key or }") return close(token, position);
        expected = "colon";
        return afterString(text, position);
      default:
        if (token === "]" && expected === "value or ]") return close(token, position);
        if (token === "{" || token === "[") {
          open.push(token);
          expected = token === "{" ? "key or }" : "value or ]";
          return position + 1;
        }
        expected = open.length === 0 ? "end" : "comma or close";
        return afterString(text, position) ?? after(PLAIN, text, position);
    }
  }

  function close(token: string | undefined, position: number): number | undefined {
    if (token !== (open.pop() === "{" ? "}" : "]")) return undefined;
    expected = open.length === 0 ? "end" : "comma or close";
    return position + 1;
  }
}

function after(pattern: RegExp, text: string, position: number): number | undefined {
  pattern.lastIndex = position;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function afterString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"') return at + 1;
    if (char < " ") return undefined;
    if (char !== "\\") continue;
    const escaped = text[++at] ?? "";
    if (escaped === "u") {
      if (after(HEX, text, at + 1) === undefined) return undefined;
      at += 4;
    } else if (escaped === "" || !ESCAPES.includes(escaped)) {
      return undefined;
    }
  }
  return undefined;
}
