import { create } from "@bufbuild/protobuf";
import { formatFieldPath, parseFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowField } from "../../../../arrow/schema.ts";
import {
  type AlterTableBackfillColumnsRequest,
  AlterTableBackfillColumnsResponseSchema,
} from "../../../../gen/lance/namespace/v1/schema_pb.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { DataContext } from "../../data/data-context.ts";
import { engineCall, repeatConflicts } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { exactValue, exactWithAnyIndex, refuseInexact } from "../../engine/sql/exact-filter.ts";
import { checkExpressions, predicateSteps } from "../../engine/sql/predicate.ts";
import { parseSql } from "../../engine/sql/trees.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { CLUSTER_ENGINE, isForCluster, type Job, type JobFacts } from "../../jobs/job.ts";
import { chooseEngine, workersOf } from "../../jobs/job-engine.ts";
import type { EngineContext, ReadContext, RowJobContext } from "../context.ts";
import { FUNCTION_KEY, fieldIdOf } from "../functions/computed-column.ts";
import { planFunctionFill } from "../functions/function-fill.ts";
import { countRows, dataOfJob } from "../read/count-rows.ts";
import { inRoomOfJob } from "../read/memory-room.ts";
import { checkChange, memoryOfReads, memoryOfUpdate } from "../rows/change-memory.ts";
import { withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { duringWork } from "../tables/long-work.ts";
import { datasetOf, isMain, withData } from "../tables/open-data.ts";
import { mentions, refuseMisread } from "../tables/refuse-misread.ts";
import {
  type ClusterFill,
  describeClusterBackfill,
  fillOnCluster,
  planFunctionOnCluster,
  planOnCluster,
} from "./cluster-backfill.ts";
import { schemaOf } from "./columns.ts";

/** The kind of the jobs that fill a column. */
export const BACKFILL_COLUMN = "backfill_column";

/**
 * The metadata key of a plain column under which the SQL expression of its values is kept. The engine itself keeps the
 * expression of a computed column, under `computed_column.expression`.
 */
export const EXPRESSION_KEY = "lance_gateway.expression";

/** The operation that fills a column from the expression that is stored with it. */
export function createBackfillOperations(
  context: DataContext & RowJobContext & Pick<ReadContext, "readAhead"> & Pick<EngineContext, "cluster">,
): Pick<LanceNamespace, "alterTableBackfillColumns"> {
  const { cluster, jobs } = context;

  describeClusterBackfill(context, BACKFILL_COLUMN);
  jobs.define(BACKFILL_COLUMN, async (job, signal) => {
    if (isForCluster(job)) return fillOnCluster(context, job, signal);
    const { location, branch } = job.spec;
    return duringWork(context, { id: job.table, location: String(location) }, async (table) => {
      const dataset = datasetOf(context, table, textOf(branch));
      const facts = await context.gate.passSlowly(table.path, () =>
        withData(context, table, { branch: textOf(branch) }, async (native) => {
          const { manifest } = await readVersion(dataset, BigInt(await engineCall(() => native.version())));
          refuseMisread(await findMisread(dataset, manifest), { all: true });
          return fill(native, job, context, signal);
        }),
      );
      await syncVersion(dataset);
      return facts;
    });
  });

  /** Plans the work of a cluster; returns why it cannot do it. */
  async function spreadFill(
    native: NativeTable,
    { column, expression, where }: Fill,
    dataset: DatasetRef | undefined,
  ): Promise<{ readonly fill: ClusterFill } | { readonly reason: string }> {
    if (dataset === undefined) return { reason: "a branch" };
    // The engine would compute the values again that it has not recorded itself.
    if (expression === undefined) return { reason: "a computed column of the engine" };
    return planOnCluster(native, dataset, { column, expression, where });
  }

  return {
    async alterTableBackfillColumns(request, call) {
      const found = await requireTable(context, call);
      const { location } = found;
      const branch = isMain(request.branch) ? undefined : request.branch;
      const work = await withGuarded(context, call, { branch }, async (data) => {
        const { table, wait, refuseMisread } = data;
        const schema = await wait(() => schemaOf(table));
        const { names, field } = resolveField(schema, request.column);
        await checkReach(request, () => wait(() => table.version()));
        const functionText = names.length === 1 ? field.metadata[FUNCTION_KEY] : undefined;
        if (functionText !== undefined) {
          if (branch !== undefined) throw unsupported("a function fills no column of a branch");
          const asked = { kind: BACKFILL_COLUMN, rows: 0, ...found, workers: request.concurrency };
          const version = BigInt(await wait(() => table.version()));
          const id = await fieldIdOf(datasetOf(context, found), version, formatFieldPath(names));
          const bound = await planFunctionFill(
            context,
            schema,
            { location, column: field.name, field: id, binding: functionText },
            call,
          );
          const spread = await wait(() =>
            planFunctionOnCluster(table, datasetOf(context, found), {
              ...{ column: names.join("."), where: request.where },
            }),
          );
          return { ...spread, function: bound, engine: CLUSTER_ENGINE, ...workersOf(cluster, asked) };
        }
        const plan = await planFill(names, field, request);
        const { expression } = plan;
        // The engine writes the rows that it fills again.
        await refuseMisread(() => ({ all: true, expressions: [expression, plan.where] }));
        // A fault in the expression or the condition fails the request here rather than the job later.
        if (expression !== undefined) await wait(() => check(table, expression, plan.where));
        const asked = { asked: request.cluster, workers: request.concurrency };
        const heavy = { kind: BACKFILL_COLUMN, rows: await data.rowCount(), ...found, ...asked };
        const engine = chooseEngine(cluster, heavy);
        if (engine === "embedded") return plan;
        const main = branch === undefined ? datasetOf(context, found) : undefined;
        const spread = await wait(() => spreadFill(table, plan, main));
        if ("fill" in spread) return { ...spread.fill, engine, ...workersOf(cluster, heavy) };
        if (request.cluster !== engine) return plan;
        throw unsupported(`a Ray cluster does not fill column ${request.column}: ${spread.reason}`);
      });
      const spec = { location, branch, ...work };
      const { id } = await jobs.submit(
        { kind: BACKFILL_COLUMN, table: call.id, spec },
        callerKey(call),
        call,
      );
      return create(AlterTableBackfillColumnsResponseSchema, { jobId: id });
    },
  };
}

interface Fill {
  /** The engine takes the names of top-level columns as they are. */
  readonly column: string;
  /** The expression of a plain column; absent for a computed column, whose expression the engine keeps. */
  readonly expression?: string;
  readonly where?: string | undefined;
}

/** Checks a request and plans its job. @throws LanceError InvalidInput, Unsupported */
async function planFill(
  names: readonly string[],
  { metadata }: ArrowField,
  { column, where }: { column: string; where?: string | undefined },
): Promise<Fill> {
  const condition = await inSlices(predicateSteps(where));
  const path = formatFieldPath(names);
  if (metadata["computed_column"] === "true") {
    await checkComputed(metadata);
    const kind = metadata["computed_column.kind"] ?? "sql";
    if (kind !== "sql") {
      throw unsupported(
        `column ${column} is computed by a function (${kind}), which this server does not run`,
      );
    }
    if (condition !== undefined && !isMissing(condition, names)) {
      throw unsupported(
        `the engine fills all rows of a computed column that need it; of conditions it can only have "${path} IS NULL"`,
      );
    }
    return { column: names.join(".") };
  }
  const expression = metadata[EXPRESSION_KEY];
  if (expression === undefined) {
    throw new LanceError(
      "InvalidInput",
      `Column '${column}' is not a computed column, and its metadata has no ${EXPRESSION_KEY}`,
    );
  }
  if (names.length > 1)
    throw unsupported(`column ${column} is inside of a struct; the engine sets whole columns only`);
  checkExpressions([[expression, `${EXPRESSION_KEY} of ${column}`]]);
  return { column: names.join("."), expression, where: condition };
}

/** Checks the expression of a computed column, which clients can set as metadata of the field. */
async function checkComputed(metadata: ArrowField["metadata"]): Promise<void> {
  const expression = metadata["computed_column.expression"];
  if (expression === undefined) return;
  checkExpressions([[expression, "computed_column.expression"]]);
  await refuseInexact(expression, "computed_column.expression");
}

/** Whether a condition is `column IS NULL`, which selects the rows that the engine fills anyway. */
function isMissing(condition: string, names: readonly string[]): boolean {
  const { root } = parseSql(condition);
  if (root.kind !== "operation" || root.operator !== "is" || root.negated) return false;
  const [, test] = root.operands;
  if (test?.kind !== "word" || test.word !== "null") return false;
  const path = condition.slice(0, root.at).trim();
  try {
    return formatFieldPath(parseFieldPath(path)) === formatFieldPath(names);
  } catch {
    return false;
  }
}

/**
 * Refuses to leave out part of the work, which the engine cannot do. The server alone decides how to spread the work.
 */
async function checkReach(
  { readVersion, numFrags }: AlterTableBackfillColumnsRequest,
  newest: () => Promise<number>,
): Promise<void> {
  if (numFrags !== undefined) throw unsupported("num_frags: the engine fills all fragments");
  if (readVersion !== undefined && readVersion !== BigInt(await newest())) {
    throw unsupported("read_version: the engine computes from the newest version");
  }
}

async function check(native: NativeTable, expression: string, where: string | undefined): Promise<void> {
  const { fields } = await schemaOf(native);
  const query = native.query();
  query.select([["value", await exactValue(expression, fields)]]);
  if (where !== undefined) query.onlyIf(await exactWithAnyIndex(where, fields));
  query.limit(1);
  await query.explainPlan(false);
}

async function fill(
  native: NativeTable,
  job: Job,
  { readAhead }: Pick<ReadContext, "readAhead">,
  signal: AbortSignal,
): Promise<JobFacts> {
  const { spec } = job;
  const data = dataOfJob(native, signal);
  const waiting = { call: { signal }, readAhead };
  const [column, expression] = [String(spec["column"]), textOf(spec["expression"])];
  const sourceVersion = await engineCall(() => native.version());
  // The job may be older than these checks, and the column's metadata may be newer than the job.
  if (expression === undefined) {
    const { fields } = await schemaOf(native);
    for (const { metadata } of fields) await checkComputed(metadata);
    const computed = fields.map(({ metadata }) => metadata["computed_column.expression"]);
    const bytes = await memoryOfReads(data, { expressions: computed });
    const refresh = () => inRoomOfJob(bytes, waiting, () => native.refreshColumn(column));
    const { rowsFilled, version } = await repeatConflicts(native, refresh, () => !signal.aborted);
    return { rows: rowsFilled, sourceVersion, version };
  }
  checkExpressions([[expression, `${EXPRESSION_KEY} of ${column}`]]);
  if (mentions(expression, [column])) refuseSecondStart(job, column);
  const condition = await inSlices(predicateSteps(textOf(spec["where"])));
  const { fields } = await schemaOf(native);
  const where = condition && (await exactWithAnyIndex(condition, fields));
  const exact = await exactValue(expression, fields);
  const bytes = await memoryOfUpdate(data, where, () => countRows(data, where, waiting));
  checkChange(bytes);
  const update = () => inRoomOfJob(bytes, waiting, () => native.update(where, [[column, exact]]));
  const { rowsUpdated, version } = await repeatConflicts(native, update, () => !signal.aborted);
  return { rows: rowsUpdated, sourceVersion, version };
}

/**
 * Refuses to apply an expression once more to values that may be its own results, such as `x + 1` to the column `x`.
 *
 * @throws LanceError OutcomeUnknown
 */
function refuseSecondStart({ events = [], begun = 0 }: Job, column: string): void {
  const starts = events.filter(({ state }) => state === "running").length;
  if (Math.max(starts, begun) <= 1) return;
  throw new LanceError(
    "OutcomeUnknown",
    `a process ended while it filled column ${column}, whose expression reads the column itself and is not applied twice; look at the column before you start another backfill`,
  );
}

function textOf(value: JobFacts[string]): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function unsupported(message: string): LanceError {
  return new LanceError("Unsupported", message);
}
