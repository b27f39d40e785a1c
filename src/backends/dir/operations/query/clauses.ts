import { fieldNamed, formatFieldPath, parseFieldPath } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { DEFAULT_SEARCH_ROWS } from "../../../../namespace/search-rows.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { exactColumns } from "../../engine/sql/exact-filter.ts";
import { checkExpressions } from "../../engine/sql/predicate.ts";
import type { QueryFields } from "./fields.ts";

/** The column of row ids. */
export const ROW_ID = "_rowid";

/** The column of the fused ranks of a hybrid search. */
export const RELEVANCE = "_relevance_score";

/** A column of the ids of rows, for the filter that applies after a search; results do not have it. */
export const FOUND_ROW = "__lance_gateway_row";

/** The columns of a result. */
export interface Columns {
  /** Each name with the expression of its values. */
  readonly entries: readonly (readonly [name: string, expression: string])[];
  /** Whether every expression is the column of its name, so that the engine gets the names. */
  readonly plain: boolean;
}

/** Columns that no table has and that results may have. */
export const OF_RESULTS: ReadonlySet<string> = new Set([
  ROW_ID,
  "_rowaddr",
  "_distance",
  "_score",
  RELEVANCE,
]);

/**
 * Number of names above which the engine gets bare names as expressions. It parses each name of a list beside all columns of the table,
 * which takes 4.5 s for 4,000 of them; a bare name of a column, as an expression, it only looks up.
 */
export const MANY_NAMES = 100;

/** Returns the columns that a request asks for; undefined for all. @throws LanceError InvalidInput */
export async function columnsOf(
  { columns }: QueryFields,
  { fields }: ArrowSchema,
): Promise<Columns | undefined> {
  if (columns === undefined) return undefined;
  const aliases = Object.entries(columns.columnAliases);
  if (aliases.length > 0 && columns.columnNames.length > 0) {
    throw new LanceError("InvalidInput", "columns has names and aliases; it must have one of them");
  }
  checkExpressions(
    aliases.map(([alias, expression]) => [expression, `the expression of alias ${JSON.stringify(alias)}`]),
  );
  if (aliases.length > 0) {
    return { entries: await exactColumns(aliases, fields), plain: false };
  }
  const entries = columns.columnNames.map(
    (path) => [columnName(path), formatFieldPath(parseFieldPath(path))] as const,
  );
  const isBare = ([name, expression]: Columns["entries"][number]) =>
    name === expression && (fieldNamed(fields, name) !== undefined || OF_RESULTS.has(name));
  return { entries, plain: entries.length <= MANY_NAMES || !entries.every(isBare) };
}

/** Longest name of a choice of columns, in characters. */
const MAX_NAME = 1024;

/** Returns a text that names a choice of columns; undefined if it is long. */
export function nameOf(columns: Columns | undefined): string | undefined {
  if (columns === undefined) return "";
  let name = "";
  for (const [, expression] of columns.entries) {
    name += `${expression}\n`;
    if (name.length > MAX_NAME) return undefined;
  }
  return name;
}

/** Adds the column {@link FOUND_ROW}. */
export function withFoundRow(columns: Columns | undefined, { fields }: ArrowSchema): Columns {
  const entries = columns?.entries ?? fields.map(({ name }) => [name, formatFieldPath([name])] as const);
  return { entries: [...entries, [FOUND_ROW, ROW_ID]], plain: false };
}

/** Returns a column's name for the engine, which takes a top-level name literally and therefore without quotes. */
function columnName(path: string): string {
  const names = parseFieldPath(path);
  return names.length === 1 ? (names[0] as string) : path;
}

/** Gives a query its columns. */
export function selectColumns(query: NativeQueryBase, columns: Columns | undefined): void {
  if (columns?.plain) query.selectColumns(columns.entries.map(([name]) => name));
  else if (columns !== undefined)
    query.select(columns.entries.map(([name, expression]) => [name, expression]));
}

/** Maximum limit that the engine takes. LanceDB's clients send the largest integer for "no limit". */
export const MAX_LIMIT = 0x7fff_ffff;

/** Gives a query the clauses that scans and searches of all kinds have. */
export function applyClauses(query: NativeQueryBase, request: QueryFields): void {
  if (request.filter !== undefined) query.onlyIf(request.filter);
  if (request.fastSearch) query.fastSearch();
  if (request.useLsm !== undefined) query.useLsm(request.useLsm);
}

/** Gives a query its order. */
export function orderRows(query: NativeQueryBase, { orderBy }: QueryFields): void {
  if (orderBy.length === 0) return;
  query.orderBy(
    orderBy.map(({ columnName: path, ascending = true, nullsFirst = false }) => ({
      columnName: columnName(path),
      ascending,
      nullsFirst,
    })),
  );
}

/** Returns the paths of the keys of an order, in the form in which SQL has them. */
export function keysOf({ orderBy }: Pick<QueryFields, "orderBy">): string[] {
  return orderBy.map(({ columnName: path }) => formatFieldPath(parseFieldPath(path)));
}

/**
 * Returns the number of rows of a result, and of those before it that are left out.
 *
 * @param search whether the request is a search, which has a limit by default
 */
export function rowsOf({ k, offset = 0n }: QueryFields, search: boolean) {
  if (k === 0n) return { limit: 0, offset: 0 };
  const skipped = Number(offset > BigInt(MAX_LIMIT) ? MAX_LIMIT : offset);
  if (k === undefined) return { limit: search ? DEFAULT_SEARCH_ROWS : undefined, offset: skipped };
  if (k > BigInt(MAX_LIMIT)) return { limit: search ? MAX_LIMIT : undefined, offset: skipped };
  return { limit: Number(k), offset: skipped };
}
