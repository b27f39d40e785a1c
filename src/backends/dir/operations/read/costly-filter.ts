import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { timeLimit } from "../../concurrency/wait.ts";
import { costlyRows } from "../../engine/passing-rows.ts";
import { UNSTOPPED_STEPS } from "../../engine/sql/costs.ts";
import type { BuiltQuery, CostlyFilter } from "../query/build.ts";
import type { Guarded } from "../tables/call-data.ts";

/** Maximum number of rows among which a query runs: the engine takes a second to read so many ids. */
const MOST_ROWS = 65_536;

/**
 * Finds the rows that meet the costly condition of a query that the engine cannot stop, and returns the query among these. Finding them ends
 * with the call. A condition that takes a second or two for all rows stays as it is.
 *
 * @throws LanceError InvalidInput, if too many rows meet the condition; Cancelled
 */
export async function findRowsFirst(built: BuiltQuery, data: Guarded, call: Call): Promise<BuiltQuery> {
  const { costlyFilter } = built;
  if (costlyFilter === undefined || (await isShort(costlyFilter, data))) return built;
  const milestones = await data.wait(costlyFilter.milestones);
  // A write log keeps rows that have no ids yet.
  if (milestones === undefined) return built;
  const { where, fast, among } = costlyFilter;
  const batches = costlyRows(data.table, where, milestones, timeLimit(call), fast);
  const found: bigint[] = [];
  for (;;) {
    const { value: ids, done } = await data.wait(() => batches.next());
    if (done) return data.wait(() => among(found));
    for (const id of ids) found.push(id);
    if (found.length > MOST_ROWS)
      throw tooLong(
        costlyFilter,
        `and more than ${MOST_ROWS} rows meet it, which a search or an order cannot have`,
      );
  }
}

/**
 * Refuses to run a query for its plan that the engine could not stop for long.
 *
 * @throws LanceError InvalidInput
 */
export async function refuseLongPlan({ costlyFilter }: BuiltQuery, data: Guarded): Promise<void> {
  if (costlyFilter === undefined || (await isShort(costlyFilter, data))) return;
  throw tooLong(costlyFilter, "and a plan that is analyzed cannot be stopped; ask for the plan alone");
}

async function isShort({ steps, rows }: CostlyFilter, data: Guarded): Promise<boolean> {
  if (steps * rows <= UNSTOPPED_STEPS) return true;
  return steps * Math.min(rows, await data.rowCount()) <= UNSTOPPED_STEPS;
}

function tooLong({ steps }: CostlyFilter, why: string): LanceError {
  return new LanceError("InvalidInput", `the filter takes ${Math.ceil(steps)} steps for each row, ${why}`);
}
