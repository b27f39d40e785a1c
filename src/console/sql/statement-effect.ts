/** Effect of a statement on tables: none, an addition, or a change that loses something. */
export type Effect = "reads" | "adds" | "changes";

/** Spaces as the gateway reads them, and comments to the end of a line. */
const SPACE = /^(?:[\s\u200b\u2060]+|--[^\n\r]*)+/;

/** Tells the effect of a statement by its first words, for a question. The gateway decides what a statement does. */
export function effectOf(statement: string): Effect {
  const [first = "", second, third] = firstWords(statement, 3);
  if (/^(?:UPDATE|DELETE|DROP)$/.test(first)) return "changes";
  if (first === "CREATE" && second === "OR" && third === "REPLACE") return "changes";
  return first === "INSERT" || first === "CREATE" ? "adds" : "reads";
}

/** Returns the words that a statement begins with, in upper case. */
function firstWords(statement: string, count: number): readonly string[] {
  const words: string[] = [];
  for (let rest = statement; words.length < count; ) {
    rest = behindSpace(rest);
    const word = /^\w+/.exec(rest)?.[0];
    if (word === undefined) break;
    words.push(word.toUpperCase());
    rest = rest.slice(word.length);
  }
  return words;
}

/** Returns what follows spaces and comments, which may have others in them. */
function behindSpace(text: string): string {
  let rest = text.replace(SPACE, "");
  while (rest.startsWith("/*")) {
    let depth = 0;
    for (const { 0: mark, index } of rest.matchAll(/\/\*|\*\//g)) {
      depth += mark === "/*" ? 1 : -1;
      if (depth > 0) continue;
      rest = rest.slice(index + mark.length).replace(SPACE, "");
      break;
    }
    if (depth > 0) return "";
  }
  return rest;
}
