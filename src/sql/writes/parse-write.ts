import { LanceError } from "../../namespace/errors.ts";
import { readSourceQuery } from "../materialized/source-query.ts";
import type { Existing } from "../sql-engine.ts";
import { targetAt } from "../table-names.ts";
import { isWord, positionAt, type Token, TokenReader } from "./tokens.ts";
import type { NewColumn, WriteStatement } from "./write-statement.ts";

/**
 * Reads the head of a statement that changes something; undefined for other statements. DuckDB makes trees of queries alone, so that the gateway
 * reads the few words before them itself.
 *
 * @throws LanceError InvalidInput for a head that does not parse, Unsupported for one that is not served
 */
export function parseWrite(statement: string): WriteStatement | undefined {
  const tokens = new TokenReader(statement);
  if (tokens.accept("INSERT")) return insert(statement, tokens);
  if (tokens.accept("UPDATE")) return update(statement, tokens);
  if (tokens.accept("DELETE")) return deletion(statement, tokens);
  if (tokens.accept("CREATE")) return creation(statement, tokens);
  if (tokens.accept("DROP")) return drop(statement, tokens);
  if (tokens.accept("REFRESH")) return refresh(statement, tokens);
  return undefined;
}

function insert(statement: string, tokens: TokenReader): WriteStatement {
  tokens.expect("INTO");
  const target = targetAt(tokens);
  const names = namesAt(tokens);
  if (names !== undefined && new Set(names.map((name) => name.toLowerCase())).size < names.length)
    throw new LanceError("InvalidInput", `the statement inserts a column of "${target.text}" twice`);
  const query = queryAt(statement, tokens);
  return { kind: "insert", target, query, ...(names !== undefined && { columns: names }) };
}

/** Words that begin a query, which may stand in parentheses, too. */
const QUERIES = ["SELECT", "WITH", "FROM", "VALUES", "("];

/** Reads a list of names in parentheses, if one is next. */
function namesAt(tokens: TokenReader): readonly string[] | undefined {
  if (QUERIES.some((word) => tokens.isNext("(", word)) || !tokens.accept("(")) return undefined;
  const names: string[] = [];
  do names.push(tokens.name("the name of a column"));
  while (tokens.accept(","));
  tokens.expect(")");
  return names;
}

function update(statement: string, tokens: TokenReader): WriteStatement {
  const target = targetAt(tokens);
  const alias = aliasAt(tokens, "SET") ?? target.name;
  tokens.expect("SET");
  return { kind: "update", target, alias, query: queryAt(statement, tokens, "SELECT") };
}

function deletion(statement: string, tokens: TokenReader): WriteStatement {
  tokens.expect("FROM");
  const target = targetAt(tokens);
  const alias = aliasAt(tokens, "WHERE") ?? target.name;
  if (!tokens.isNext("WHERE")) tokens.end();
  return { kind: "delete", target, alias, query: queryAt(statement, tokens, "SELECT 1") };
}

/** Reads another name for a table, if one is next, before a word. */
function aliasAt(tokens: TokenReader, before: string): string | undefined {
  if (tokens.accept("AS")) return tokens.name("another name for the table");
  const { kind, text } = tokens.next;
  const isAlias = kind === "quoted" || (kind === "word" && text.toUpperCase() !== before);
  return isAlias ? tokens.name("another name for the table") : undefined;
}

function creation(statement: string, tokens: TokenReader): WriteStatement {
  const replaces = tokens.accept("OR", "REPLACE");
  if (tokens.accept("VIEW")) return viewCreation(statement, tokens, replaces);
  if (!replaces && tokens.accept("MATERIALIZED", "VIEW")) return materializedCreation(statement, tokens);
  if (!tokens.accept("TABLE"))
    throw unsupported(statement, tokens, replaces ? "CREATE OR REPLACE" : "CREATE");
  const existing = existingAt(tokens, replaces);
  const target = targetAt(tokens);
  if (tokens.accept("AS"))
    return { kind: "createTableAs", target, existing, query: queryAt(statement, tokens) };
  const columns = readColumns(statement, tokens);
  tokens.end();
  return { kind: "createTable", target, existing, columns };
}

function viewCreation(statement: string, tokens: TokenReader, replaces: boolean): WriteStatement {
  const existing = existingAt(tokens, replaces);
  const target = targetAt(tokens);
  tokens.expect("AS");
  const text = statement.slice(tokens.next.start).replace(/\s*;?\s*$/, "");
  return { kind: "createView", target, existing, query: queryAt(statement, tokens), text };
}

function materializedCreation(statement: string, tokens: TokenReader): WriteStatement {
  const existing = existingAt(tokens, false);
  const target = targetAt(tokens);
  const options = readOptions(statement, tokens, ["auto_refresh_enabled"]);
  tokens.expect("AS");
  const query = readSourceQuery(statement, tokens.next.start);
  const autoRefresh = options.get("auto_refresh_enabled") === true;
  return { kind: "createMaterializedView", target, existing, autoRefresh, query };
}

function refresh(statement: string, tokens: TokenReader): WriteStatement {
  if (!tokens.accept("MATERIALIZED", "VIEW")) throw unsupported(statement, tokens, "REFRESH");
  const target = targetAt(tokens);
  const options = readOptions(statement, tokens, ["full"]);
  tokens.end();
  return { kind: "refreshMaterializedView", target, isFull: options.get("full") === true };
}

function existingAt(tokens: TokenReader, replaces: boolean): Existing {
  if (replaces) return "replace";
  if (!tokens.accept("IF")) return "refuse";
  tokens.expect("NOT", "EXISTS");
  return "keep";
}

function drop(statement: string, tokens: TokenReader): WriteStatement {
  const kind = droppedAt(tokens);
  if (kind === undefined) throw unsupported(statement, tokens, "DROP");
  const isOptional = tokens.accept("IF");
  if (isOptional) tokens.expect("EXISTS");
  const target = targetAt(tokens);
  tokens.end();
  return { kind, target, isOptional };
}

function droppedAt(tokens: TokenReader): "dropTable" | "dropView" | "dropMaterializedView" | undefined {
  if (tokens.accept("TABLE")) return "dropTable";
  if (tokens.accept("VIEW")) return "dropView";
  return tokens.accept("MATERIALIZED", "VIEW") ? "dropMaterializedView" : undefined;
}

function unsupported(statement: string, { next }: TokenReader, verb: string): LanceError {
  const at = positionAt(statement, next.start);
  return new LanceError("Unsupported", `${verb} of "${next.text}" is not supported at position ${at}`);
}

/**
 * Returns what follows the head, with spaces in place of the head.
 *
 * @param before what it begins with, which is shorter than the head. Default: it is complete
 */
export function queryAt(statement: string, { next }: TokenReader, before = ""): string {
  const head = Buffer.byteLength(statement.slice(0, next.start));
  return `${before.padEnd(head)}${statement.slice(next.start)}`;
}

/** Reasons why options that LanceDB's clients send are refused. */
const REASONS: ReadonlyMap<string, string> = new Map([
  [
    "auto_refresh_interval_seconds",
    ": a view with auto_refresh_enabled is refreshed soon after its source has changed, and at no interval",
  ],
]);

/**
 * Reads `WITH (name = true, …)`, if it is next.
 *
 * @throws LanceError Unsupported for an unknown option, InvalidInput for one that is set twice, and for a value that is not true or false
 */
function readOptions(
  statement: string,
  tokens: TokenReader,
  known: readonly string[],
): ReadonlyMap<string, boolean> {
  const options = new Map<string, boolean>();
  if (!tokens.accept("WITH")) return options;
  tokens.expect("(");
  do {
    const at = positionAt(statement, tokens.next.start);
    const name = tokens.name("the name of an option").toLowerCase();
    if (!known.includes(name)) {
      const reason = REASONS.get(name) ?? "";
      throw new LanceError("Unsupported", `the option "${name}" is not supported at position ${at}${reason}`);
    }
    if (options.has(name))
      throw new LanceError("InvalidInput", `the option "${name}" is there twice, again at position ${at}`);
    tokens.expect("=");
    const isTrue = tokens.accept("TRUE");
    if (!isTrue && !tokens.accept("FALSE")) throw tokens.unexpected("true or false");
    options.set(name, isTrue);
  } while (tokens.accept(","));
  tokens.expect(")");
  return options;
}

/** Words behind the type of a column that the catalog has no counterpart for. */
const REFUSED = [
  "PRIMARY",
  "UNIQUE",
  "DEFAULT",
  "CHECK",
  "REFERENCES",
  "COLLATE",
  "GENERATED",
  "AS",
  "USING",
];

/** Words that begin a rule of the whole table. */
const RULES = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"];

/**
 * Reads the columns of CREATE TABLE, in parentheses.
 *
 * @throws LanceError InvalidInput for something else, Unsupported for rules such as keys and defaults
 */
function readColumns(statement: string, tokens: TokenReader): readonly NewColumn[] {
  tokens.expect("(");
  const columns: NewColumn[] = [];
  const names = new Set<string>();
  do {
    const column = readColumn(statement, tokens);
    if (names.size === names.add(column.name.toLowerCase()).size)
      throw new LanceError("InvalidInput", `the new table has the column "${column.name}" twice`);
    columns.push(column);
  } while (tokens.accept(","));
  tokens.expect(")");
  return columns;
}

function readColumn(statement: string, tokens: TokenReader): NewColumn {
  if (RULES.some((word) => isWord(tokens.next, word))) throw refused(statement, tokens.next);
  const name = tokens.name("the name of a column");
  const { start } = tokens.next;
  let end = start;
  for (let depth = 0; !endsType(tokens.next, depth); ) {
    const token = tokens.take();
    if (token.kind === "end") throw tokens.unexpected('")"');
    if (token.kind === "mark" && !"()[],.".includes(token.text)) throw refused(statement, token);
    if (isWord(token, "(")) depth++;
    if (isWord(token, ")")) depth--;
    end = token.end;
  }
  if (end === start) throw tokens.unexpected(`the type of the column "${name}"`);
  const isRequired = tokens.accept("NOT", "NULL");
  if (!isRequired) tokens.accept("NULL");
  if (!isWord(tokens.next, ",") && !isWord(tokens.next, ")")) throw refused(statement, tokens.next);
  return { name, type: statement.slice(start, end), isNullable: !isRequired };
}

function endsType(token: Token, depth: number): boolean {
  if (depth > 0) return false;
  return [",", ")", "NOT", "NULL", ...REFUSED].some((word) => isWord(token, word));
}

function refused(statement: string, { text, start }: Token): LanceError {
  const at = positionAt(statement, start);
  return new LanceError("Unsupported", `"${text}" of a new table is not supported at position ${at}`);
}
