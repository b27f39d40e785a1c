import { splitIpcFile } from "../../../arrow/ipc/stream.ts";
import { inSlices } from "../../../runtime/pace.ts";
import { batchRowsOf } from "./batch-rows.ts";
import { filteredRows } from "./filtered-rows.ts";
import { milestonesOf } from "./milestones.ts";
import type { NativeTable } from "./native/native.ts";
import { costlyRows } from "./passing-rows.ts";
import { costSteps } from "./sql/costs.ts";

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
export interface CountOptions {
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
