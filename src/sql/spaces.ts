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
