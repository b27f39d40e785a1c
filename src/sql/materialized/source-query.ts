import { nameOf, type SqlToken, tokenizeSql } from "../../backends/dir/engine/sql/tokens.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Target, targetOf } from "../table-names.ts";
import { positionAt } from "../writes/tokens.ts";

/** The query of a materialized view, in the engine's language for queries of a single table. */
export interface SourceQuery {
  /** Query as it was sent. */
  readonly text: string;
  readonly source: Target;
  /** Place of the source's name in {@link text}. */
  readonly start: number;
  readonly end: number;
}

const FORM = "SELECT columns FROM table [WHERE condition] [LIMIT rows]";

/** Most names of a source: database, schema and table. */
const MAX_NAMES = 3;

/** Words that begin a clause, where no bracket is open. */
const CLAUSES = /^(?:HAVING|UNION|INTERSECT|EXCEPT|QUALIFY)$/i;
/** Words that begin one together with BY. */
const BY_CLAUSES = /^(?:GROUP|ORDER)$/i;

/**
 * Reads the query behind the head of a statement. Its condition and its expressions are checked by the operation that creates the view.
 *
 * @param at place of the query in the statement
 * @throws LanceError Unsupported for a query of another form, with the position of what it has more; InvalidInput for one that is not cut into words
 */
export function readSourceQuery(statement: string, at: number): SourceQuery {
  // Spaces in place of the head: positions in errors are those of the statement.
  const tokens = tokenizeSql(" ".repeat(at) + statement.slice(at));
  if (tokens.at(-1)?.text === ";") tokens.pop();
  const refused = ({ text, start }: SqlToken): LanceError =>
    new LanceError(
      "Unsupported",
      `"${text.slice(0, 100)}" is not supported in the query of a materialized view, which is ${FORM}, at position ${positionAt(statement, start)}`,
    );
  const missing = (what: string): LanceError =>
    new LanceError("InvalidInput", `the query of a materialized view has no ${what}; it is ${FORM}`);

  const [first, second] = tokens;
  if (first === undefined) throw missing("SELECT");
  if (!isKeyword(first, "SELECT")) throw refused(first);
  if (isKeyword(second, "DISTINCT") || isKeyword(second, "ALL")) throw refused(second as SqlToken);
  for (const [i, token] of tokens.entries()) {
    if (token.text === ";" || (i > 0 && isKeyword(token, "SELECT"))) throw refused(token);
    if (token.kind !== "word" || token.depth > 0) continue;
    if (CLAUSES.test(token.text) || (BY_CLAUSES.test(token.text) && isKeyword(tokens[i + 1], "BY")))
      throw refused(token);
  }
  const from = tokens.findIndex(
    (token, i) => token.depth === 0 && isKeyword(token, "FROM") && !isKeyword(tokens[i - 1], "DISTINCT"),
  );
  if (from < 0) throw missing("FROM");
  const { names, next } = namesAt(tokens, from + 1, refused);
  const [start, end] = [tokens[from + 1]?.start, tokens[next - 1]?.end];
  if (names.length === 0 || start === undefined || end === undefined) throw missing("table");
  const behind = tokens[next];
  if (behind !== undefined && !isKeyword(behind, "WHERE") && !isKeyword(behind, "LIMIT"))
    throw refused(behind);
  const text = statement.slice(at, tokens.at(-1)?.end);
  return { text, source: targetOf(names), start: start - at, end: end - at };
}

/** Returns the query with the path of its table, from the root on, in place of the name in SQL. */
export function queryFrom({ text, start, end }: SourceQuery, path: readonly string[]): string {
  const names = path.map((name) => `"${name.replaceAll('"', '""')}"`);
  return text.slice(0, start) + names.join(".") + text.slice(end);
}

/** Reads names that are joined by dots, and the number of the token behind them. */
function namesAt(
  tokens: readonly SqlToken[],
  from: number,
  refused: (token: SqlToken) => LanceError,
): { names: readonly string[]; next: number } {
  const names: string[] = [];
  for (let i = from; ; i += 2) {
    const token = tokens[i];
    if (token === undefined) return { names: [], next: i };
    if (names.length === MAX_NAMES) throw refused(token);
    if (!isName(token)) throw refused(token);
    names.push(nameOf(token));
    if (tokens[i + 1]?.text !== ".") return { names, next: i + 1 };
  }
}

function isKeyword(token: SqlToken | undefined, keyword: string): boolean {
  return token?.kind === "word" && token.text.toUpperCase() === keyword;
}

/** Whether a token is a name, and no string, number or mark. */
function isName({ kind, text }: SqlToken): boolean {
  return kind === "word" || (kind === "quoted" && !text.endsWith("'"));
}
