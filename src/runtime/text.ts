/** The deepest nesting of objects and arrays in a request body. */
export const MAX_JSON_DEPTH = 64;

/** Whether a parsed value is an object with members: neither null nor a list. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Longest text of a client in a line of a log, in characters: a refused request may contain anything. */
const MAX_LENGTH = 300;

/** Returns a text that fits into a line of a log. */
export function clipped(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH - 1)}…`;
}

/** Characters that JSON leaves as they are, and that end lines or change how a terminal shows them. */
const INVISIBLE = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns the JSON of a line without characters that break lines or hide others. */
export function escapeInvisible(json: string): string {
  return json.replace(INVISIBLE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A range of an `Accept` header. */
export interface MediaRange {
  /** Media type in lower case, or a pattern such as `application/*`. */
  readonly type: string;
  /** Weight from 0, for types that are refused, to 1. */
  readonly weight: number;
}

/** Returns the ranges of an `Accept` header in their order. */
export function mediaRanges(accept: string): MediaRange[] {
  return accept.split(",").map((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return { type, weight: weight === undefined ? 1 : Number(weight) || 0 };
  });
}

/** Names of options that hold credentials, or from which they follow. */
export const SECRET_NAME = /key|secret|token|password|passwd|credential|signature|sas/i;

/** Draws digits and small letters of five bits each, so that drawn names differ where case is ignored, too. */
export function drawCharacters(count: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => (byte & 31).toString(32)).join(
    "",
  );
}
