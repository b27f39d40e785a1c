/** Control characters except line breaks and tabs, and characters that reorder or hide what a terminal shows. */
const COMMANDS = /(?![\n\t])[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Returns a text that shows in a terminal and does nothing else; names and errors of a server may contain anything. */
export function forTerminal(text: string): string {
  return text.replaceAll(COMMANDS, " ");
}
