import { LanceError } from "../namespace/errors.ts";
import { putNewest } from "../runtime/put-newest.ts";
import type { Conversation } from "./conversation.ts";
import type { Reshape, SqlView } from "./sql-engine.ts";
import { checkWritten } from "./tree/check.ts";
import { type NamedTables, type ParsedView, replaceTables, tableKey } from "./tree/tables.ts";
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
