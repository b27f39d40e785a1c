import { LanceError } from "../../../../namespace/errors.ts";
import { checkIdentifier, type Identifier } from "../../../../namespace/identifier.ts";
import { firstRepeated } from "../../../../runtime/collections.ts";
import { checkExpression } from "../../engine/sql/predicate.ts";
import { nameOf, type SqlToken, tokenizeSql } from "../../engine/sql/tokens.ts";

/**
 * The query of a materialized view:
 *
 *     SELECT * | expression [AS name] [, …] FROM namespace.table [WHERE condition] [LIMIT rows]
 *
 * An expression that is not a column needs a name. Names with special characters are quoted with double quotes or
 * backticks.
 */
export interface ViewQuery {
  /** The columns by name and expression; an empty list means `*`, all columns of the view's schema. */
  readonly columns: readonly (readonly [name: string, expression: string])[];
  readonly source: Identifier;
  readonly where: string | undefined;
  readonly limit: number | undefined;
}

const FORM = "SELECT columns FROM table [WHERE condition] [LIMIT rows], of one table and without aggregates";

/**
 * Reads the query of a view.
 *
 * @throws LanceError InvalidInput for a text that is not a {@link ViewQuery}
 */
export function parseViewQuery(text: string): ViewQuery {
  const tokens = tokenizeSql(text);
  if (tokens.at(-1)?.text === ";") tokens.pop();
  if (!isKeyword(tokens[0], "SELECT")) throw invalid("it does not begin with SELECT");
  if (isKeyword(tokens[1], "DISTINCT")) throw invalid("DISTINCT is not understood");
  const limit = takeLimit(tokens);
  const from = findFrom(tokens);
  if (from < 0) throw invalid("FROM is missing");
  const where = tokens.findIndex((token, i) => i > from && isClause(token, "WHERE"));
  const source = tokens.slice(from + 1, where < 0 ? undefined : where);
  return {
    columns: parseColumns(text, tokens.slice(1, from)),
    source: parseSource(source),
    where: where < 0 ? undefined : expressionOf(text, tokens.slice(where + 1)),
    limit,
  };
}

/**
 * Returns a query of the table below a namespace of the root.
 *
 * @throws LanceError InvalidInput for a text that is not a {@link ViewQuery}
 */
export function withSourceIn(text: string, namespace: string): string {
  parseViewQuery(text);
  const at = startOfSource(text);
  return text.slice(0, at) + prefixOf(namespace) + text.slice(at);
}

/** Returns a query of a table as it was before {@link withSourceIn}; any other query stays as it is. */
export function withoutSourceIn(text: string, namespace: string): string {
  const at = startOfSource(text);
  const prefix = prefixOf(namespace);
  return text.startsWith(prefix, at) ? text.slice(0, at) + text.slice(at + prefix.length) : text;
}

function startOfSource(text: string): number {
  const tokens = tokenizeSql(text);
  return tokens[findFrom(tokens) + 1]?.start ?? text.length;
}

function prefixOf(namespace: string): string {
  return `"${namespace.replaceAll('"', '""')}".`;
}

function findFrom(tokens: readonly SqlToken[]): number {
  return tokens.findIndex((token, i) => isClause(token, "FROM") && !isKeyword(tokens[i - 1], "DISTINCT"));
}

function isKeyword(token: SqlToken | undefined, keyword: string): boolean {
  return token?.kind === "word" && token.text.toUpperCase() === keyword;
}

function isClause(token: SqlToken, keyword: string): boolean {
  return token.depth === 0 && isKeyword(token, keyword);
}

/** Removes `LIMIT rows` from the end. */
function takeLimit(tokens: SqlToken[]): number | undefined {
  const [keyword, count] = tokens.slice(-2);
  if (keyword === undefined || !isClause(keyword, "LIMIT")) return undefined;
  if (count === undefined || !/^\d{1,15}$/.test(count.text)) throw invalid("LIMIT needs a number of rows");
  tokens.splice(-2);
  return Number(count.text);
}

function parseColumns(text: string, tokens: readonly SqlToken[]): ViewQuery["columns"] {
  if (tokens.length === 1 && tokens[0]?.text === "*") return [];
  const columns = split(tokens, (token) => token.text === "," && token.depth === 0).map((item) =>
    parseColumn(text, item),
  );
  const names = columns.map(([name]) => name);
  const twice = firstRepeated(names);
  if (twice !== undefined) throw invalid(`it has two columns of the name ${JSON.stringify(twice)}`);
  return columns;
}

function parseColumn(text: string, tokens: readonly SqlToken[]): readonly [string, string] {
  const name = tokens.at(-1);
  if (name !== undefined && isKeyword(tokens.at(-2), "AS")) {
    return [requireName(name), expressionOf(text, tokens.slice(0, -2))];
  }
  const expression = expressionOf(text, tokens);
  const path = split(tokens, ({ text: separator }) => separator === ".");
  const last = path.at(-1)?.[0];
  if (last === undefined || path.some(([first, ...more]) => more.length > 0 || !isName(first))) {
    throw invalid(`the column ${expression.slice(0, 100)} needs a name: … AS name`);
  }
  return [requireName(last), expression];
}

function parseSource(tokens: readonly SqlToken[]): Identifier {
  const parts = split(tokens, ({ text }) => text === ".");
  const names = parts.flatMap(([name, ...more]) => {
    if (name === undefined || more.length > 0) throw invalid("FROM needs the name of one table");
    return name.kind === "word" ? name.text.split("$") : [requireName(name)];
  });
  checkIdentifier(names);
  return names;
}

/** Returns the text of some tokens. To the engine, double quotes are those of a text, and not of a name. */
function expressionOf(text: string, tokens: readonly SqlToken[]): string {
  if (tokens.length === 0) throw invalid("an expression is missing");
  let expression = "";
  for (const [i, token] of tokens.entries()) {
    const before = tokens[i - 1]?.end ?? token.start;
    const isName = token.kind === "quoted" && token.text.startsWith('"');
    const own = text.slice(token.start, token.end);
    expression += text.slice(before, token.start) + (isName ? inBackticks(nameOf(token)) : own);
  }
  checkExpression(expression);
  return expression;
}

function inBackticks(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

function isName(token: SqlToken | undefined): boolean {
  return token?.kind === "word" || (token?.kind === "quoted" && !token.text.startsWith("'"));
}

function requireName(token: SqlToken): string {
  if (!isName(token)) throw invalid(`${token.text.slice(0, 100)} is not a name`);
  return nameOf(token);
}

function split(tokens: readonly SqlToken[], separates: (token: SqlToken) => boolean): SqlToken[][] {
  const parts: SqlToken[][] = [[]];
  for (const token of tokens) {
    if (separates(token)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

function invalid(reason: string): LanceError {
  return new LanceError("InvalidInput", `source_query: ${reason}; the supported form is ${FORM}`);
}
