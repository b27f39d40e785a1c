import { behindSpaces } from "./spaces.ts";

/** Effect of a statement on tables: none, an addition, or a change that loses something. */
export type Effect = "reads" | "adds" | "changes";

/** Tells the effect of a statement by its first words, for a question. The gateway decides what a statement does. */
export function effectOf(statement: string): Effect {
  const [first = "", second, third] = firstWords(statement, 3);
  if (/^(?:UPDATE|DELETE|DROP)$/.test(first)) return "changes";
  if (first === "CREATE" && second === "OR" && third === "REPLACE") return "changes";
  return /^(?:INSERT|CREATE|REFRESH)$/.test(first) ? "adds" : "reads";
}

/** Returns the words that a statement begins with, in upper case. */
function firstWords(statement: string, count: number): readonly string[] {
  const words: string[] = [];
  for (let at = 0; words.length < count; ) {
    at = behindSpaces(statement, at);
    const word = /^\w+/.exec(statement.slice(at))?.[0];
    if (word === undefined) break;
    words.push(word.toUpperCase());
    at += word.length;
  }
  return words;
}
