import type { ArrowField } from "../arrow/schema.ts";
import { LanceError } from "../namespace/errors.ts";
import { putNewest } from "../runtime/collections.ts";
import { columnOf, fieldsByName, fieldsOf } from "./column-types.ts";
import type { Conversation } from "./conversation.ts";
import type { ScannedTable } from "./process/messages.ts";
import type { Reshape, SqlTable, SqlView } from "./sql-engine.ts";
import { checkWritten } from "./tree/check.ts";
import { type Pushed, pushedInto } from "./tree/pushdown.ts";
import { type NamedTables, namesRowId, type ParsedView, replaceTables, tableKey } from "./tree/tables.ts";
import { readTree, type TreeNode, writeTree } from "./tree/tree.ts";

/** A statement whose tree has passed the check, with scans in place of its tables. It depends on its text and on the views that it reads, not on tables or rights. */
export interface CheckedStatement extends NamedTables {
  readonly tree: TreeNode;
  /** The statement that DuckDB runs. */
  readonly text: Uint8Array;
}

/** Longest statement, in bytes. */
const MAX_STATEMENT_BYTES = 256 * 1024;

/** Number of statements that are kept, and the longest of them, in characters. */
const KEPT = 256;
const MAX_KEPT_LENGTH = 16 * 1024;

/** A statement as it was sent, with what decides about its meaning. */
export interface StatementText {
  readonly statement: string;
  readonly namespacePath: readonly string[];
  readonly reshape: Reshape | undefined;
  /** The views among the tables that it names, and those that these name. */
  readonly views: readonly SqlView[];
}

/** Checks statements, and keeps the results of the last ones. */
export interface CheckedStatements {
  /** Returns the result of an earlier check; undefined if it is not kept. */
  known(text: StatementText): CheckedStatement | undefined;
  /** @throws LanceError InvalidInput, Unsupported */
  check(text: StatementText, conversation: Conversation): Promise<CheckedStatement>;
}

export function createCheckedStatements(): CheckedStatements {
  /** The one that is used least recently first. */
  const kept = new Map<string, CheckedStatement>();
  /** Returns the key of a statement; undefined for one that is not kept. */
  function keyOf({ statement, namespacePath, reshape, views }: StatementText): string | undefined {
    if (reshape?.isPure === false) return undefined;
    const key = JSON.stringify([
      ...[namespacePath, statement, reshape?.text],
      ...views.map((view) => [tableKey(view), view.query, view.namespacePath]),
    ]);
    return key.length <= MAX_KEPT_LENGTH ? key : undefined;
  }
  function keep(key: string | undefined, checked: CheckedStatement): void {
    if (key !== undefined) putNewest(kept, key, checked, KEPT);
  }
  return {
    known(text) {
      const key = keyOf(text);
      const known = key === undefined ? undefined : kept.get(key);
      if (known !== undefined) keep(key, known);
      return known;
    },
    async check(text, conversation) {
      const checked = await checkStatement(text, conversation);
      keep(keyOf(text), checked);
      return checked;
    },
  };
}

/** @throws LanceError InvalidInput for a text that no statement is */
export function checkText(statement: string): void {
  if (Buffer.byteLength(statement) > MAX_STATEMENT_BYTES)
    throw new LanceError("InvalidInput", `the statement has more than ${MAX_STATEMENT_BYTES} bytes`);
  // DuckDB would read the statement up to there.
  if (statement.includes("\0")) throw new LanceError("InvalidInput", "the statement has a null character");
}

async function checkStatement(
  { statement, namespacePath, reshape, views }: StatementText,
  conversation: Conversation,
): Promise<CheckedStatement> {
  const parsed = async (text: string) =>
    (await conversation.ask({ kind: "parse" }, Buffer.from(text))).body.slice();
  const parse = async (text: string) => readTree(await parsed(text));
  const trees = new Map<string, ParsedView>();
  for (const view of views) {
    // Another program may have written it.
    checkText(view.query);
    trees.set(tableKey(view), { tree: await parsed(view.query), namespacePath: view.namespacePath });
  }
  const sent = await parse(statement);
  const tree = reshape === undefined ? sent : await parse(reshape.text);
  reshape?.apply(tree, sent);
  const named = replaceTables(tree, namespacePath, trees);
  return { ...named, tree, text: await writeChecked(tree, conversation) };
}

/**
 * Returns the text of a tree, which DuckDB has parsed again.
 *
 * @param kept names of the kept tables that the tree may have. Default: none.
 * @throws LanceError Unsupported if the text says something else
 */
export async function writeChecked(
  tree: TreeNode,
  conversation: Conversation,
  kept: ReadonlySet<string> = new Set(),
): Promise<Uint8Array> {
  const { body, firstBytes } = await conversation.ask({ kind: "write" }, writeTree(tree));
  checkWritten(readTree(body.subarray(firstBytes)), kept);
  return body.slice(0, firstBytes);
}

/** A statement that processes bind under an id. It fits every call whose tables have these columns. */
export interface Plan extends CheckedStatement {
  readonly id: number;
  /** Schemas of its tables. */
  readonly schemas: readonly Uint8Array[];
  readonly scanned: readonly ScannedTable[];
  readonly pushed: ReadonlyMap<number, Pushed>;
  /** Whether it must not read kept tables. */
  readonly namesRowId: boolean;
  /** The newest plan that reads kept tables in place of some of these, with their names. */
  kept?: { readonly names: string; readonly plan: Plan };
}

/** Whether a plan is right for tables: they have the columns that it was made for, and about as many rows. */
export function fits({ schemas, scanned }: Plan, open: readonly SqlTable[]): boolean {
  return open.every((table, i) => {
    const { schema } = table;
    const rows = rowsOf(table) ?? 0;
    const { rows: planned = 0 } = scanned[i] as ScannedTable;
    const isNear = rows <= 2 * planned && planned <= 2 * rows;
    return isNear && Buffer.compare(schema, schemas[i] as Uint8Array) === 0;
  });
}

/** Plans a statement over open tables. @throws LanceError Unsupported for a table whose columns SQL does not tell apart */
export function planOf(checked: CheckedStatement, open: readonly SqlTable[], id: number): Plan {
  const fields = open.map(fieldsOf);
  return {
    ...checked,
    id,
    namesRowId: namesRowId(checked.tree),
    schemas: open.map(({ schema }) => schema),
    scanned: open.map((table, i) => {
      const name = checked.tables[i]?.text as string;
      const own = fields[i] as readonly ArrowField[];
      checkScore(table, own, name);
      return scannedTable(name, own, rowsOf(table));
    }),
    pushed: pushedInto(checked.tree, (place) => {
      const at = checked.places[place] as number;
      return { fields: fields[at] ?? [], search: open[at]?.search };
    }),
  };
}

/** Returns how many rows a table has for a plan, or a search in it finds at most. */
function rowsOf({ rows, search }: SqlTable): number | undefined {
  return search?.rows ?? rows;
}

/** @throws LanceError Unsupported for a table that has a column of the name of the score of its search */
function checkScore({ search }: SqlTable, fields: readonly ArrowField[], table: string): void {
  const taken = fields.slice(0, -1).find(({ name }) => name.toLowerCase() === search?.score);
  if (taken === undefined) return;
  const message = `table "${table}" has a column "${taken.name}", and a search adds one of this name`;
  throw new LanceError("Unsupported", message);
}

function scannedTable(name: string, fields: readonly ArrowField[], rows: number | undefined): ScannedTable {
  fieldsByName(fields, name);
  if (fields.length === 0) throw new LanceError("Unsupported", `table "${name}" has no columns`);
  return { name, columns: fields.map(columnOf), rows };
}
