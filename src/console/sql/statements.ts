import type { SQLNamespace } from "@codemirror/lang-sql";
import type { RecordBatch, Table } from "apache-arrow";
import { readBatches } from "../../arrow/rows/read-batches.ts";
import { SqlService } from "../../gen/lance/gateway/v1/sql_pb.ts";
import type { Connection } from "../session/connection.ts";

const { runSql } = SqlService.method;

/** The first rows of a result. */
export interface FirstRows {
  readonly rows: Table;
  /** Whether the result has others. */
  readonly hasMore: boolean;
}

/** Runs a statement and yields its rows as Arrow IPC. Leaving the loop ends it. */
async function* bytesOf(
  connection: Connection,
  statement: string,
  explain: boolean,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  for await (const { data } of connection.download(runSql, { statement, explain }, signal)) yield data;
}

/** Runs a statement and returns its first rows; it ends the statement once there are as many. */
export async function firstRows(
  connection: Connection,
  statement: string,
  limit: number,
  signal: AbortSignal,
): Promise<FirstRows> {
  const { Table } = await import("apache-arrow");
  const batches: RecordBatch[] = [];
  let count = 0;
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  for await (const batch of readBatches(bytesOf(connection, statement, false, either))) {
    batches.push(batch);
    count += batch.numRows;
    if (count > limit) break;
  }
  ending.abort();
  return { rows: new Table(batches).slice(0, limit), hasMore: count > limit };
}

/** Runs a statement and yields a number of its rows as Arrow IPC. */
export async function* rowsForFile(
  connection: Connection,
  statement: string,
  limit: number,
): AsyncIterable<Uint8Array> {
  const { tableToIPC } = await import("apache-arrow");
  const { rows } = await firstRows(connection, statement, limit, new AbortController().signal);
  yield tableToIPC(rows, "stream");
}

/** Returns the plan of a statement, as JSON. */
export async function planOf(
  connection: Connection,
  statement: string,
  signal: AbortSignal,
): Promise<string> {
  for await (const batch of readBatches(bytesOf(connection, statement, true, signal))) {
    const plan: unknown = batch.getChild("explain_value")?.get(0);
    if (typeof plan === "string") return plan;
  }
  return "[]";
}

/** Most statements that a tab keeps. */
const MOST = 50;

const KEY = "lance-gateway-sql";

/** Returns the statements that ran in this tab, the newest first. They go when the tab closes, as what is in them may be secret. */
export function readHistory(storage: Pick<Storage, "getItem">): readonly string[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** Adds a statement to those of this tab, and returns them. */
export function addToHistory(
  storage: Pick<Storage, "getItem" | "setItem">,
  statement: string,
): readonly string[] {
  const next = [statement, ...readHistory(storage).filter((each) => each !== statement)].slice(0, MOST);
  storage.setItem(KEY, JSON.stringify(next));
  return next;
}

/** Forgets the statements of this tab. */
export function clearHistory(storage: Pick<Storage, "removeItem">): void {
  storage.removeItem(KEY);
}

/** Names from the root downwards. */
type Id = readonly string[];

/** Returns how SQL names a table: its namespaces are joined to one name. */
export function sqlNames(id: Id): readonly string[] {
  const parents = id.slice(0, -1);
  return [...(parents.length === 0 ? [] : [parents.join("$")]), id.at(-1) ?? ""];
}

/**
 * Returns the names that an editor completes.
 *
 * @param columns columns of the tables that are known, by the tables' paths
 */
export function completionNames(
  tables: readonly Id[],
  columns: ReadonlyMap<string, readonly string[]>,
): SQLNamespace {
  const names: Record<string, Record<string, readonly string[]> | readonly string[]> = {};
  for (const id of tables) {
    const [first = "", second] = sqlNames(id);
    const own = columns.get(id.join("/")) ?? [];
    const there = names[first];
    if (second === undefined) names[first] = there ?? own;
    else names[first] = { ...(there === undefined || Array.isArray(there) ? {} : there), [second]: own };
  }
  return names as SQLNamespace;
}

/** Returns the tables whose names a statement has. */
export function tablesIn(statement: string, tables: readonly Id[]): readonly Id[] {
  const text = statement.toLowerCase();
  return tables.filter((id) => text.includes((id.at(-1) ?? "").toLowerCase()));
}
