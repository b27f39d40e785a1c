import { behindSpaces, endOfComment } from "../../sql/spaces.ts";

/** Statements that a text has so far. */
export interface Split {
  /** Complete statements, without their semicolons. */
  readonly statements: readonly string[];
  /** Text behind them, which may go on in the next line. */
  readonly rest: string;
}

/** Starts of what may have a semicolon inside, each with its end. */
const OPENERS =
  /(?<![\w$])[eE]'(?:[^'\\]|''|\\[\s\S])*'|(?<![\w$])[eE]'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*(?:[\n\r]|$)|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|;|['"]|\/\*|\$(?:[A-Za-z_]\w*)?\$/g;

/** Splits a text at the semicolons that end statements: those outside of texts, names in quotes and comments. */
export function splitStatements(text: string): Split {
  const statements: string[] = [];
  let from = 0;
  OPENERS.lastIndex = 0;
  for (let found = OPENERS.exec(text); found !== null; found = OPENERS.exec(text)) {
    const [part] = found;
    if (part === ";") {
      const statement = text.slice(from, found.index).trim();
      if (statement !== "") statements.push(statement);
      from = OPENERS.lastIndex;
    }
    if (part === "/*") {
      const end = endOfComment(text, found.index);
      if (end === undefined) break;
      OPENERS.lastIndex = end;
    }
    // A quote that is not closed yet.
    if (["'", '"', "E'"].includes(part.toUpperCase()) || /^\$\w*\$$/.test(part)) break;
  }
  return { statements, rest: text.slice(from) };
}

/** Whether a text has nothing but spaces and comments. */
export function isBlank(text: string): boolean {
  return behindSpaces(text, 0) === text.length;
}
