import { LanceError } from "../../namespace/errors.ts";
import type { Steps } from "../../runtime/pace.ts";

/** Size below which JSON is not scanned, in bytes: parsing it takes a few milliseconds whatever it contains. */
export const SMALL_JSON_BYTES = 32 * 1024;

/** Bytes that are scanned in a step, which takes about a millisecond. */
export const STEP_BYTES = 256 * 1024;

/** Bounds of a text of JSON. */
export interface JsonBounds {
  /** Maximum nesting of objects and lists. */
  readonly maxDepth: number;
  /**
   * Largest cost, in values: a list or an object costs as much as five values, a short text as eight, a name as 20. Default:
   * 1,000,000, which take about 50 ms to parse and to read.
   */
  readonly maxCost?: number | undefined;
}

const MAX_COST = 1_000_000;

/** Costs of a value, of an object or a list, of a short text, and of a name in an object. */
const COST = { value: 1, container: 5, shortText: 8, name: 20 } as const;

/** Longest text that V8 keeps only once, in bytes: to look each of them up takes longer than to copy them. */
const SHORT_TEXT_BYTES = 10;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Class of a byte outside of texts; most have none. */
export const NOTHING = 0;
export const OPEN = 1;
export const CLOSE = 2;
export const COMMA = 3;
export const COLON = 4;
export const TEXT = 5;
export const KINDS: Uint8Array = new Uint8Array(256);
for (const [bytes, kind] of [
  ["[{", OPEN],
  ["]}", CLOSE],
  [",", COMMA],
  [":", COLON],
  ['"', TEXT],
] as const) {
  for (const byte of new TextEncoder().encode(bytes)) KINDS[byte] = kind;
}

/**
 * Scans JSON before it is parsed, and returns an upper bound on the number of its values: `JSON.parse` itself takes half
 * a second for 4 MiB of brackets, and seconds for a million names. It leaves invalid JSON to the parser.
 *
 * The steps throw LanceError InvalidInput, if there are too many values or too many levels.
 */
export function* scanJson(bytes: Uint8Array, { maxDepth, maxCost = MAX_COST }: JsonBounds): Steps<number> {
  let [depth, cost, values, pauseAt] = [0, 0, 1, STEP_BYTES];
  /** Cost of the last text beyond that of any value. */
  let textCost = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + STEP_BYTES;
      yield;
    }
    const kind = KINDS[bytes[at] as number];
    if (kind === NOTHING) continue;
    if (kind === TEXT) {
      const start = at + 1;
      at = textEnd(bytes, start);
      textCost = at - start <= SHORT_TEXT_BYTES ? COST.shortText - COST.value : 0;
      cost += textCost;
    } else if (kind === COMMA) {
      cost += COST.value;
      values++;
    } else if (kind === COLON) cost += COST.name - textCost;
    else if (kind === CLOSE) depth--;
    else {
      if (++depth > maxDepth) throw tooDeep(maxDepth);
      cost += COST.container;
      values++;
    }
    if (cost > maxCost) throw tooMuch(maxCost);
  }
  return values;
}

/** Returns the position of the quote that ends a text. */
export function textEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
    // A search skips a long text, once.
    else if (at === from + 32) at = Math.max(at, plainEnd(bytes, at) - 1);
  }
  return at;
}

/** Returns the position of the next byte with a meaning in a text. */
function plainEnd(bytes: Uint8Array, from: number): number {
  const quote = bytes.indexOf(QUOTE, from);
  const end = quote === -1 ? bytes.length : quote;
  const backslash = bytes.subarray(from, end).indexOf(BACKSLASH);
  return backslash === -1 ? end : from + backslash;
}

function tooDeep(maxDepth: number): LanceError {
  return new LanceError(
    "InvalidInput",
    `request body is nested too deeply: maximum nesting depth is ${maxDepth}`,
  );
}

function tooMuch(maxCost: number): LanceError {
  const { container, shortText, name } = COST;
  return new LanceError(
    "InvalidInput",
    `request body has too much in it: ${maxCost} values, ${maxCost / container} objects and lists, ${maxCost / shortText} short texts or ${maxCost / name} names are the most`,
  );
}
