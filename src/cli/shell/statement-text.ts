/** Statements that a text has so far. */
export interface Split {
  /** Complete statements, without their semicolons. */
  readonly statements: readonly string[];
  /** Text behind them, which may go on in the next line. */
  readonly rest: string;
}

/** Starts of what may have a semicolon inside, each with its end. */
const OPENERS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*(?:\n|$)|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|\/\*[\s\S]*?\*\/|;|['"]|\/\*|\$(?:[A-Za-z_]\w*)?\$/g;

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
    // A quote or a comment that is not closed yet.
    if (["'", '"', "/*"].includes(part) || /^\$\w*\$$/.test(part)) break;
  }
  return { statements, rest: text.slice(from) };
}

/** Whether a text has nothing but spaces and comments. */
export function isBlank(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\//g, "").trim() === "";
}
