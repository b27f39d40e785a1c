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
