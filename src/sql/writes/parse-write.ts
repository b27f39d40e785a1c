import { LanceError } from "../../namespace/errors.ts";
import { readOptions } from "../materialized/options.ts";
import { readSourceQuery } from "../materialized/source-query.ts";
import type { Existing } from "../sql-engine.ts";
import { readColumns } from "./new-columns.ts";
import { type Target, targetOf } from "./target.ts";
import { positionAt, TokenReader } from "./tokens.ts";
import type { WriteStatement } from "./write-statement.ts";

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

/** Reads the name of a table, whose schema and database may be before it. */
export function targetAt(tokens: TokenReader): Target {
  const names = [tokens.name("the name of a table")];
  while (names.length < 3 && tokens.accept(".")) names.push(tokens.name("a name"));
  return targetOf(names);
}

/**
 * Returns the query that follows the head, with spaces in place of the head.
 *
 * @param before what the query begins with, which is shorter than the head. Default: the query is complete
 */
function queryAt(statement: string, { next }: TokenReader, before = ""): string {
  const head = Buffer.byteLength(statement.slice(0, next.start));
  return `${before.padEnd(head)}${statement.slice(next.start)}`;
}
