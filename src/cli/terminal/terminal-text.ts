import { escapeInvisible } from "../../runtime/text.ts";

/** Control characters except line breaks and tabs, and characters that reorder or hide what a terminal shows. */
const COMMANDS = /(?![\n\t])[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * Returns rows as they are written to a stream: a terminal shows them and does nothing else, and anything else gets them as
 * they are.
 *
 * @param rows text of whole characters
 */
export function rowsFor(
  { isTTY = false }: { readonly isTTY?: boolean },
  rows: Uint8Array,
): string | Uint8Array {
  return isTTY ? forTerminal(Buffer.from(rows).toString()) : rows;
}

/** Returns a text that shows in a terminal and does nothing else; names and errors of a server may contain anything. */
export function forTerminal(text: string): string {
  return text.replaceAll(COMMANDS, " ");
}

/** Returns what a command prints with `--json`. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Returns a value as JSON in a single line; 64-bit integers are numbers. */
export function itemJson(value: unknown): string {
  return escapeInvisible(
    JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? Number(item) : item)),
  );
}
