/** Some spaces of Unicode, for a class of a pattern. DuckDB takes them for spaces, and all other characters that are not of ASCII for letters. */
export const UNICODE_SPACES = "\\u00a0\\u2000-\\u200b\\u202f\\u205f\\u2060\\u3000\\ufeff";

/** Spaces, or a comment to the end of its line. */
const SPACE = new RegExp(`[ \\t\\n\\r\\f\\v${UNICODE_SPACES}]+|--[^\\n\\r]*`, "y");

/** Returns the place behind the spaces and comments at a place of a statement. It is before a comment that has no end. */
export function behindSpaces(statement: string, from: number): number {
  for (let at = from; ; ) {
    SPACE.lastIndex = at;
    const start = at + (SPACE.exec(statement)?.[0].length ?? 0);
    const behind = endOfComment(statement, start) ?? start;
    if (behind === at) return at;
    at = behind;
  }
}

/** Returns the place behind the comment that begins at a place, which may have others in it; undefined if none begins, or none ends. */
export function endOfComment(statement: string, start: number): number | undefined {
  if (!statement.startsWith("/*", start)) return undefined;
  const marks = /\/\*|\*\//g;
  marks.lastIndex = start;
  let depth = 0;
  for (let found = marks.exec(statement); found !== null; found = marks.exec(statement)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  return undefined;
}

/** Effect of a statement on tables: none, an addition, or a change that loses something. */
type Effect = "reads" | "adds" | "changes";

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
