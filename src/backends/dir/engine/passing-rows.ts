import { integersOf } from "../../../arrow/edit.ts";
import { splitIpcFile } from "../../../arrow/ipc/stream.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { inSlices } from "../../../runtime/pace.ts";
import { type Milestones, milestonesOf } from "./milestones.ts";
import type { NativeTable } from "./native/native.ts";
import type { NativeQuery } from "./native/query.ts";
import { batchRowsOf } from "./row-widths.ts";
import { costSteps } from "./sql/costs.ts";

/**
 * Returns those of the given row ids whose rows meet a filter. The engine reads only these rows. Its Node API always filters before a search
 * for words alone, so the rows that it finds are looked up once more. As a column of the search, a filter would have another meaning: only in a
 * filter does the engine convert numbers and texts to the type of the column that they are compared with.
 *
 * @param batchRows maximum number of rows that the engine reads at a time
 * @param timeoutMs in milliseconds; undefined for no bound
 */
export async function passingRows(
  table: Pick<NativeTable, "query">,
  filter: string,
  ids: readonly bigint[],
  batchRows: number,
  timeoutMs: number | undefined,
): Promise<ReadonlySet<bigint>> {
  const passing = new Set<bigint>();
  if (ids.length === 0) return passing;
  const query = filteredRows(table, `_rowid IN (${ids.join(",")}) AND (${filter})`);
  const batches = await query.execute(Math.min(ids.length, batchRows), timeoutMs);
  for (let file = await batches.next(); file !== null; file = await batches.next()) {
    for (const id of rowIdsIn(file)) passing.add(id);
  }
  return passing;
}

/**
 * Yields the ids of the rows that meet a costly condition, those of each batch of the engine, of which many have none. The engine stops if the
 * caller asks for no further batch.
 *
 * @param fast whether rows that an index for the condition does not have yet are left out
 */
export async function* costlyRows(
  table: Pick<NativeTable, "query">,
  where: string,
  milestones: Milestones,
  timeoutMs: number | undefined,
  fast = false,
): AsyncGenerator<readonly bigint[], void> {
  // An error of the engine must quote the condition without its milestones.
  await filteredRows(table, where).explainPlan(false);
  const query = filteredRows(table, milestones.where);
  if (fast) query.fastSearch();
  const batches = await query.execute(milestones.batchRows, timeoutMs);
  for (let file = await batches.next(); file !== null; file = await batches.next()) {
    const ids = rowIdsIn(file);
    const doubtful = ids.filter((id) => milestones.has(id));
    const passing = await passingRows(table, where, doubtful, milestones.batchRows, timeoutMs);
    yield ids.filter((id) => !milestones.has(id) || passing.has(id));
  }
}

function rowIdsIn(file: Buffer): bigint[] {
  const { schemaMetadata, data } = splitIpcFile(file);
  const { fields } = decodeSchema(schemaMetadata);
  return data.flatMap((message) => integersOf(message, fields, 0));
}

/** Builds the query for the ids of the rows that meet a condition, those in the log of a table left out. */
export function filteredRows(table: Pick<NativeTable, "query">, filter: string): NativeQuery {
  const query = table.query();
  query.onlyIf(filter);
  query.selectColumns([]);
  query.withRowId();
  query.useLsm(false);
  return query;
}

/** Number of rows that the engine looks at between two looks at the timeout. Of fewer, each batch would cost more than its rows. */
const BATCH_ROWS = 32_768;

/** Rows times characters of a condition up to which it takes well under a second, unless it calls functions or is costly. */
const QUICK = 500_000_000;

/**
 * Names of the engine's own columns. Where a condition looks rows up by one of them, as `_rowid = 1` does, the engine's count fails
 * with an error of its own.
 */
const OWN_COLUMNS = /_row(?:id|addr|offset)/i;

/** Options of a count. */
interface CountOptions {
  /** Number of rows of the table. */
  readonly tableRows: number;
  /** Number of bytes of a row in the wide columns that the condition reads; 0 if it reads none. */
  readonly width: number;
  /** Time after which the engine stops, in milliseconds. Default: it does not. */
  readonly timeoutMs: number | undefined;
  /** Asked before each batch; a count that is no longer wanted ends with what it has. */
  readonly isWanted: () => boolean;
}

/**
 * Counts the rows that meet a condition, those in the log of a table left out. The engine's own count has no timeout and cannot be
 * stopped, and it reads thousands of rows at a time, however wide they are, so that one which may take long or reads wide rows is a query for row ids. That takes up to twice as long, and up to eight times with
 * an index that answers the condition. A costly condition has milestones, at which the count looks whether it is still wanted.
 */
export async function countMatching(
  table: Pick<NativeTable, "query" | "countRows">,
  where: string,
  { tableRows, width, timeoutMs, isWanted }: CountOptions,
): Promise<number> {
  const mostRows = batchRowsOf(width, BATCH_ROWS);
  const milestones = await milestonesOf(where, await inSlices(costSteps([where])), mostRows);
  const isQuick = !where.includes("(") && !OWN_COLUMNS.test(where) && tableRows * where.length <= QUICK;
  if (isQuick && width === 0 && milestones === undefined) return table.countRows(where);
  let rows = 0;
  if (milestones !== undefined) {
    for await (const ids of costlyRows(table, where, milestones, timeoutMs)) {
      rows += ids.length;
      if (!isWanted()) break;
    }
    return rows;
  }
  const batches = await filteredRows(table, where).execute(mostRows, timeoutMs);
  while (isWanted()) {
    const file = await batches.next();
    if (file === null) break;
    rows += splitIpcFile(file).rows;
  }
  return rows;
}
