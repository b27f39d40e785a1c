import type { ArrowField } from "../../../../arrow/schema.ts";
import { type SqlToken, tokenizeSql } from "./tokens.ts";

/** Returns the columns that SQL expressions may read: those whose names, in whatever case, are among {@link namesIn}. */
export function namedColumns(expressions: readonly string[], fields: readonly ArrowField[]): ArrowField[] {
  const names = new Set(expressions.flatMap((expression) => [...namesIn(tokenizeSql(expression))]));
  return fields.filter(({ name }) => names.has(name.toLowerCase()));
}

/**
 * Returns the names in an expression that may be columns, in lower case: all but the fields of structs, functions, types and texts. Words of
 * the grammar are among them.
 */
export function namesIn(tokens: readonly SqlToken[]): Set<string> {
  const names = new Set<string>();
  for (const [at, token] of tokens.entries()) {
    if (mayBeColumn(token, tokens[at - 1], tokens[at + 1])) names.add(nameOf(token).toLowerCase());
  }
  return names;
}

function mayBeColumn(token: SqlToken, before: SqlToken | undefined, after: SqlToken | undefined): boolean {
  if (token.kind === "number" || token.kind === "symbol" || isText(token)) return false;
  const isCall = after?.kind === "symbol" && after.text === "(";
  const isType = before?.text === "::" || (before?.kind === "word" && before.text.toLowerCase() === "as");
  const isField = before?.kind === "symbol" && before.text === ".";
  // The type of a literal, as in DATE '2024-01-31'.
  const isLiteral = token.kind === "word" && after !== undefined && isText(after);
  return !isCall && !isType && !isField && !isLiteral;
}

/** Whether a token is a text or a hexadecimal string. */
function isText({ kind, text }: SqlToken): boolean {
  return kind === "quoted" && text.endsWith("'");
}

function nameOf({ kind, text }: SqlToken): string {
  if (kind !== "quoted") return text;
  const quote = text.charAt(0);
  return text.slice(1, -1).replaceAll(quote + quote, quote);
}
