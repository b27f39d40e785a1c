import type { Table } from "apache-arrow";
import { END_OF_STREAM } from "../arrow/ipc/stream.ts";
import { LanceError } from "../namespace/errors.ts";
import type { MaterializedView, PlanFormat, SqlCall, SqlStatement, SqlTables } from "./sql-engine.ts";
import { nameOf, type Target, targetAt, targetOf } from "./table-names.ts";
import { queryAt } from "./writes/parse-write.ts";
import { positionAt, TokenReader } from "./writes/tokens.ts";
import { parameterSchema, schemaMessage } from "./writes/write-result.ts";

/** A statement that reads names of tables, or definitions of materialized views. */
type Lookup =
  /** Lists tables and views. @param names a schema, and the database before it. Default: the namespace of the call. */
  | { readonly kind: "tables"; readonly names: readonly string[] }
  | { readonly kind: "describe"; readonly target: Target }
  /** Lists names in their order. @param after lists those behind this one. Default: all. @param limit Default: none. */
  | { readonly kind: "show"; readonly after: string | undefined; readonly limit: number | undefined };

/** Largest limit: longer numbers are not exact. */
const LIMIT = /^\d{1,15}$/;

/**
 * Reads `DESCRIBE MATERIALIZED VIEW name`, `SHOW MATERIALIZED VIEWS [WHERE name > 'name'] [LIMIT n]` and `SHOW TABLES [FROM [database.]schema]`; undefined for
 * other statements.
 *
 * @throws LanceError InvalidInput for one of them that has more
 */
export function parseLookup(statement: string): Lookup | undefined {
  const tokens = new TokenReader(statement);
  if (tokens.accept("DESCRIBE", "MATERIALIZED", "VIEW")) {
    const target = targetAt(tokens);
    tokens.end();
    return { kind: "describe", target };
  }
  if (tokens.accept("SHOW", "TABLES")) {
    const isNamed = tokens.accept("FROM") || tokens.accept("IN");
    const names = isNamed ? [tokens.name("the name of a schema")] : [];
    if (isNamed && tokens.accept(".")) names.push(tokens.name("the name of a schema"));
    tokens.end();
    return { kind: "tables", names };
  }
  if (!tokens.accept("SHOW", "MATERIALIZED", "VIEWS")) return undefined;
  const after = tokens.accept("WHERE") ? nameAfter(tokens) : undefined;
  const limit = tokens.accept("LIMIT") ? limitAt(tokens) : undefined;
  tokens.end();
  return { kind: "show", after, limit };
}

/** Reads `name > 'name'`. */
function nameAfter(tokens: TokenReader): string {
  tokens.expect("name", ">");
  if (tokens.next.kind !== "string") throw tokens.unexpected("a string");
  return tokens.take().text;
}

function limitAt(tokens: TokenReader): number {
  const { kind, text } = tokens.next;
  if (kind !== "number" || !LIMIT.test(text)) throw tokens.unexpected("a number of views");
  return Number(tokens.take().text);
}

/** Prepares a statement that reads names or definitions. They are read when it runs. */
export async function prepareLookup(lookup: Lookup, call: SqlCall): Promise<SqlStatement> {
  const read = readerOf(lookup, call);
  const none = lookup.kind === "describe" ? await describedRows("", undefined) : await namesRows([]);
  return {
    ...{ schema: await schemaMessage(none.schema), parameters: await parameterSchema(0) },
    ...{ readsTables: true, isUpdate: false },
    run: (_parameters, signal, tables = call.tables) => read(tables, signal),
    async *explain() {
      yield* [];
      throw new LanceError("Unsupported", "a statement that reads no rows of tables has no plan");
    },
  };
}

/** Yields the messages of a result. */
type Read = (tables: SqlTables, signal: AbortSignal) => AsyncIterable<Uint8Array>;

/** Returns what reads the rows of a lookup. */
function readerOf(lookup: Lookup, call: SqlCall): Read {
  const { namespacePath = [] } = call;
  switch (lookup.kind) {
    case "tables": {
      const namespace = nameOf(targetOf([...lookup.names, ""]), call).path.slice(0, -1);
      return (tables, signal) => tableNames(tables, namespace, signal);
    }
    case "describe": {
      const { path } = nameOf(lookup.target, call);
      return async function* (tables, signal) {
        yield messagesOf(await describedRows(path.at(-1) ?? "", await describe(tables, path, signal)));
      };
    }
    case "show":
      return async function* (tables, signal) {
        yield messagesOf(await namesRows(await show(tables, namespacePath, lookup, signal)));
      };
  }
}

/** Names of a batch. */
const BATCH_NAMES = 1_000;

/** Yields the names as they are listed, of which a namespace may have any number. */
async function* tableNames(
  tables: SqlTables,
  namespace: readonly string[],
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  if (tables.listTables === undefined)
    throw new LanceError("Unsupported", "tables are not listed by a statement here");
  const head = await schemaMessage((await namesRows([])).schema);
  const batchOf = async (names: readonly string[]) =>
    (await messagesOf(await namesRows(names))).subarray(head.byteLength);
  yield head;
  let names: string[] = [];
  for await (const name of tables.listTables(namespace, signal)) {
    if (names.push(name) < BATCH_NAMES) continue;
    yield batchOf(names);
    names = [];
  }
  if (names.length > 0) yield batchOf(names);
}

function describe(
  tables: SqlTables,
  path: readonly string[],
  signal: AbortSignal,
): Promise<MaterializedView> {
  if (tables.describeMaterializedView === undefined) throw noViews();
  return tables.describeMaterializedView(path, signal);
}

/** Returns the names in their order, by which the last one of a page leads to the next page. */
async function show(
  tables: SqlTables,
  namespacePath: readonly string[],
  { after, limit }: Extract<Lookup, { kind: "show" }>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (tables.listMaterializedViews === undefined) throw noViews();
  const names: string[] = [];
  for await (const name of tables.listMaterializedViews(namespacePath, signal))
    if (after === undefined || name > after) names.push(name);
  return names.sort().slice(0, limit);
}

function noViews(): LanceError {
  return new LanceError("Unsupported", "materialized views are not supported here");
}

/** @param view undefined for no rows */
async function describedRows(name: string, view: MaterializedView | undefined): Promise<Table> {
  const { Bool, Int64, Table, Utf8, vectorFromArray } = await import("apache-arrow");
  const all = view === undefined ? [] : [view];
  const int64s = (of: (view: MaterializedView) => bigint | undefined) =>
    vectorFromArray(
      all.map((each) => of(each) ?? null),
      new Int64(),
    );
  return new Table({
    name: vectorFromArray(
      all.map(() => name),
      new Utf8(),
    ),
    query: vectorFromArray(
      all.map(({ query }) => query),
      new Utf8(),
    ),
    auto_refresh: vectorFromArray(
      all.map(({ autoRefresh }) => autoRefresh),
      new Bool(),
    ),
    source_version: int64s(({ sourceVersion }) => sourceVersion),
    version: int64s(({ version }) => version),
  });
}

async function namesRows(names: readonly string[]): Promise<Table> {
  const { Table, Utf8, vectorFromArray } = await import("apache-arrow");
  return new Table({ name: vectorFromArray(names, new Utf8()) });
}

/** Returns the messages of a table: a schema, and its rows if there are some. */
async function messagesOf(table: Table): Promise<Uint8Array> {
  const { tableToIPC } = await import("apache-arrow");
  return tableToIPC(table, "stream").subarray(0, -END_OF_STREAM.byteLength);
}

/** A query whose plan is asked for. */
interface Explained {
  readonly query: string;
  readonly format: PlanFormat;
}

/** Spellings of the option that runs the query. */
const ANALYZE: readonly string[] = ["ANALYZE", "ANALYSE"];

/**
 * Reads `EXPLAIN [(FORMAT JSON)]` before a query; undefined for other statements.
 *
 * @throws LanceError Unsupported for EXPLAIN ANALYZE and EXPLAIN (ANALYZE), which would run the query, InvalidInput for other options
 */
export function parseExplain(statement: string): Explained | undefined {
  const tokens = new TokenReader(statement);
  if (!tokens.accept("EXPLAIN")) return undefined;
  const refuseAnalyze = () => {
    const { start } = tokens.next;
    if (!ANALYZE.some((word) => tokens.isNext(word))) return;
    throw new LanceError(
      "Unsupported",
      `EXPLAIN ANALYZE is not supported at position ${positionAt(statement, start)}; EXPLAIN shows the plan`,
    );
  };
  refuseAnalyze();
  let format: PlanFormat = "TEXT";
  if (tokens.accept("(", "FORMAT")) {
    if (tokens.accept("JSON")) format = "JSON";
    else tokens.expect("TEXT");
    if (tokens.accept(",")) refuseAnalyze();
    tokens.expect(")");
  } else if (ANALYZE.some((word) => tokens.isNext("(", word))) {
    tokens.take();
    refuseAnalyze();
  }
  return { query: queryAt(statement, tokens), format };
}

/** Returns the statement whose rows are the plan of another one. */
export async function planStatement(query: SqlStatement, format: PlanFormat): Promise<SqlStatement> {
  const { Table, Utf8, vectorFromArray } = await import("apache-arrow");
  const none = vectorFromArray([], new Utf8());
  return {
    ...query,
    schema: await schemaMessage(new Table({ explain_key: none, explain_value: none }).schema),
    run: (parameters, signal) => query.explain(signal, format, parameters),
    explain: (signal) => query.explain(signal, format),
  };
}
