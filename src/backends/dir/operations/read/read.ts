import { create } from "@bufbuild/protobuf";
import {
  AnalyzeTableQueryPlanResponseSchema,
  CountTableRowsResponseSchema,
  ExplainTableQueryPlanResponseSchema,
  type QueryTableResponse,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { agreedIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import { timeLimit } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import { milestonesOf } from "../../engine/milestones.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { costlyRows } from "../../engine/passing-rows.ts";
import { MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import { areCostly, UNSTOPPED_STEPS } from "../../engine/sql/costs.ts";
import { predicateSteps } from "../../engine/sql/predicate.ts";
import type { ReadContext } from "../context.ts";
import { type BuiltQuery, buildQuery, type CostlyFilter } from "../query/build.ts";
import type { QueryFields } from "../query/fields.ts";
import { atOneVersion, type Guarded, openGuarded, withGuarded } from "../tables/call-data.ts";
import { openEarly, readEarly } from "../tables/early-data.ts";
import { countRows } from "./count-rows.ts";
import type { Place } from "./read-ahead.ts";
import { enterResult, resultMessages } from "./result-stream.ts";
import { sizeOfConditions } from "./sampled-width.ts";

/** The operations that read rows. */
export function createReadOperations(
  context: DataContext & ReadContext,
): Pick<LanceNamespace, "countTableRows" | "queryTable" | "explainTableQueryPlan" | "analyzeTableQueryPlan"> {
  /**
   * Returns the plan of a query; each search of a hybrid query has its own plan.
   *
   * @param enter called before the plan of a query that is run
   */
  async function plans(
    call: Call,
    request: QueryFields,
    planOf: (query: NativeQueryBase) => Promise<string>,
    enter?: (built: BuiltQuery, data: Guarded) => Promise<Place>,
  ): Promise<string> {
    return withGuarded(context, call, request, async (data) => {
      const built = await build(context, data, request);
      if (built.isCostly) data.takeTurns();
      if (enter !== undefined) await data.refuseMisread(built.reads);
      const place = await enter?.(built, data);
      try {
        return await planTexts(built, data, planOf);
      } finally {
        place?.leave();
      }
    });
  }

  async function planTexts(
    { whole, steps }: BuiltQuery,
    data: Guarded,
    planOf: (query: NativeQueryBase) => Promise<string>,
  ): Promise<string> {
    if (steps.length === 0) return data.wait(async () => planOf(await whole()));
    const texts = ["HybridSearch: fusion=reciprocal rank\n"];
    for (const [name, part] of steps) texts.push(`${name}:\n${await data.wait(() => planOf(part))}`);
    return texts.join("\n");
  }

  async function countOf(data: Guarded, filter: string, call: Call): Promise<number> {
    const check = () => data.refuseMisread(() => ({ expressions: [filter] }));
    await check();
    const safe = await data.safeFilter(filter);
    const count = await countRows(data, safe, { call, readAhead: context.readAhead });
    await check();
    return count;
  }

  async function* rowsOf(
    opened: Guarded,
    request: QueryFields,
    call: Call,
  ): AsyncGenerator<QueryTableResponse, void> {
    let data = opened;
    try {
      const { readAhead } = context;
      let built = await build(context, data, request, true);
      if (looksRowsUp(built)) {
        data = await atOneVersion(context, call, request, data);
        built = await build(context, data, request, true);
      }
      if (built.isCostly) data.takeTurns();
      await data.refuseMisread(built.reads);
      yield* resultMessages(await findRowsFirst(built, data, call), { data, call, readAhead });
    } finally {
      data.release();
    }
  }

  return {
    async countTableRows({ version, branch, predicate }, call) {
      const filter = await inSlices(predicateSteps(predicate));
      const reference = { version, branch };
      const isCostly = filter !== undefined && (await areCostly([filter]));
      async function countIn(opened: Guarded): Promise<number> {
        let data = opened;
        try {
          if (isCostly) {
            data = await atOneVersion(context, call, reference, data);
            data.takeTurns();
          }
          return filter === undefined ? await data.rowCount() : await countOf(data, filter, call);
        } finally {
          data.release();
        }
      }
      const early = openEarly(context, call, reference);
      const count = await readEarly(early, () => openGuarded(context, call, reference), countIn);
      return create(CountTableRowsResponseSchema, { count: BigInt(count) });
    },
    async *queryTable(request, call) {
      const early = openEarly(context, call, request);
      const open = () => openGuarded(context, call, request);
      const { first, messages } = await readEarly(
        early,
        open,
        (data) => begin(rowsOf(data, request, call)),
        (begun) => void begun.messages.return(),
      );
      try {
        for (let next = first; next.done !== true; next = await messages.next()) yield next.value;
      } finally {
        await messages.return();
      }
    },
    async explainTableQueryPlan({ query, branch, verbose = false }, call) {
      if (query === undefined) throw new LanceError("InvalidInput", "query is missing");
      const named = agreedIdentifier(query.id, query.identifier, query.delimiter);
      if (named.length > 0 && !sameIdentifier(named, call.id)) {
        throw new LanceError("InvalidInput", "id differs from the id of query");
      }
      if (branch && query.branch && branch !== query.branch) {
        throw new LanceError("InvalidInput", "branch differs from the branch of query");
      }
      const fields = { ...query, branch: query.branch || branch };
      const plan = await plans(call, fields, (part) => part.explainPlan(verbose));
      return create(ExplainTableQueryPlanResponseSchema, { plan });
    },
    async analyzeTableQueryPlan(request, call) {
      const analysis = await plans(
        call,
        request,
        (part) => part.analyzePlan(),
        async (built, data) => {
          await refuseLongPlan(built, data);
          return (await enterResult(built, { data, call, readAhead: context.readAhead })).place;
        },
      );
      return create(AnalyzeTableQueryPlanResponseSchema, { analysis });
    },
  };
}

/** Waits for the first message, or the end. */
async function begin<T>(messages: AsyncGenerator<T, void>) {
  return { first: await messages.next(), messages };
}

/** Whether a query looks rows up by ids that another query has found. */
function looksRowsUp({ costlyScan, costlyFilter, filterAfter }: BuiltQuery): boolean {
  return costlyScan !== undefined || costlyFilter !== undefined || filterAfter !== undefined;
}

/**
 * Builds a query. A search that skips rows outside the index includes them while upkeep has taken some out of it that
 * the client has seen there.
 *
 * @param milestones whether costly conditions have milestones, so that the engine stops soon after the call
 */
async function build(
  { reindexed, maxSearchExpansions: maxExpansions }: DataContext & ReadContext,
  data: Guarded,
  asked: QueryFields,
  milestones = false,
): Promise<BuiltQuery> {
  const { table, found, schema, textFields, safeFilter, wait } = data;
  const request = asked.fastSearch && reindexed.has(found.path) ? { ...asked, fastSearch: false } : asked;
  const columns = await schema();
  const find = async (filter: string, steps: number) => {
    // The ids of rows in a log are not those of the table.
    if (await table.getLsmWriteSpec()) return undefined;
    const size = await sizeOfConditions([filter], data);
    return milestonesOf(filter, steps, size?.batchRows ?? MAX_BATCH_ROWS);
  };
  const options = { textFields, safeFilter, maxExpansions, milestones: milestones ? find : undefined };
  return wait(async () => buildQuery(table, request, columns, options));
}

/** Maximum number of rows among which a query runs: the engine takes a second to read so many ids. */
const MOST_ROWS = 65_536;

/**
 * Finds the rows that meet the costly condition of a query that the engine cannot stop, and returns the query among these. Finding them ends
 * with the call. A condition that takes a second or two for all rows stays as it is.
 *
 * @throws LanceError InvalidInput, if too many rows meet the condition; Cancelled
 */
async function findRowsFirst(built: BuiltQuery, data: Guarded, call: Call): Promise<BuiltQuery> {
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
async function refuseLongPlan({ costlyFilter }: BuiltQuery, data: Guarded): Promise<void> {
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
