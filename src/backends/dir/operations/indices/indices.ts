import { create } from "@bufbuild/protobuf";
import {
  type CreateTableIndexRequest,
  CreateTableIndexResponseSchema,
  type CreateTableScalarIndexRequest,
  CreateTableScalarIndexResponseSchema,
  type DescribeTableIndexStatsRequest,
  type DescribeTableIndexStatsResponse,
  DescribeTableIndexStatsResponseSchema,
  DropTableIndexResponseSchema,
  type IndexContent,
  IndexContentSchema,
  ListTableIndicesResponseSchema,
} from "../../../../gen/lance/namespace/v1/index_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { NativeIndex } from "../../engine/native/index.ts";
import { dropIndex, indexNotFound } from "../../format/changes/index-entries.ts";
import { CLUSTER_ENGINE, isForCluster, type JobEngineName, requireSuccess } from "../../jobs/job.ts";
import { chooseEngine, type HeavyWork, runOn } from "../../jobs/job-engine.ts";
import { untilEnded } from "../../jobs/jobs.ts";
import type { EngineContext, PageContext, RowJobContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { openGuarded, withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { allIndices, isSystemIndex, statsOfIndex } from "./all-indices.ts";
import { buildOnCluster, describeBuild, whyNotOnCluster } from "./cluster-build.ts";
import {
  CREATE_INDEX,
  createIndexBuilds,
  type IndexPlan,
  indexExists,
  planIndex,
  planOf,
} from "./index-build.ts";
import { checkIndexFields, type IndexFields } from "./index-fields.ts";
import { indexKind, indexTypeName } from "./index-kinds.ts";

/** The response header that carries the id of a job. */
const JOB_HEADER = "x-lance-job-id";

/** The operations on indices. */
export function createIndexOperations(
  context: DataContext & RowJobContext & EngineContext & PageContext,
): Pick<
  LanceNamespace,
  | "createTableIndex"
  | "createTableScalarIndex"
  | "listTableIndices"
  | "describeTableIndexStats"
  | "dropTableIndex"
> {
  const { jobs } = context;
  const builds = createIndexBuilds(context);

  const { cluster, embedded } = context;
  const kindOf = (type: string) => indexKind(type, cluster !== undefined);

  cluster?.describe(CREATE_INDEX, describeBuild);
  jobs.define(CREATE_INDEX, async (job, signal) => {
    const plan = planOf(job);
    const inProcess = async (end: AbortSignal) => {
      await builds.build(job.table, plan, end, job.attempts > 1);
      return {};
    };
    await builds.reserve(plan, async () => {
      if (!isForCluster(job)) await runOn(embedded, { jobId: job.id, inProcess }, signal);
      else await buildOnCluster(context, job, signal);
    });
    return { index: plan.name };
  });

  /**
   * Waits for the index, or as long as the client prefers to wait.
   *
   * @returns the id of the job that builds the index, for a client with such a preference
   */
  async function createIndex(
    request: CreateTableIndexRequest | CreateTableScalarIndexRequest,
    call: Call,
  ): Promise<string | undefined> {
    const { branch, column, indexType, name = "" } = request;
    const kind = kindOf(indexType);
    const fields = checkIndexFields(kind, indexFields(request));
    const table = await requireTable(context, call);
    const data = await openGuarded(context, call, { branch }, table);
    let plan: IndexPlan = { location: table.location, branch, column, name, type: indexType, fields };
    let engine: JobEngineName;
    try {
      plan = await data.wait(() => planIndex(context, data, plan));
      engine = engineOf(plan, { kind: CREATE_INDEX, rows: await data.rowCount(), ...table });
    } finally {
      data.release();
    }
    if ((await builds.find(plan.location, branch, plan.name)) !== undefined) throw indexExists(plan.name);
    const patience = patienceOf(call);
    if (patience === undefined && engine === "embedded") {
      await builds.reserve(plan, () =>
        jobs.runUnrecorded(call.signal, callerKey(call), () => builds.build(call.id, plan, call.signal)),
      );
      return undefined;
    }
    const { location } = plan;
    const spec = {
      location,
      branch,
      index: plan.name,
      column: plan.column,
      type: indexType,
      plan: JSON.stringify(plan),
      ...(engine !== "embedded" && { engine }),
    };
    const { id } = await jobs.submit({ kind: CREATE_INDEX, table: call.id, spec }, callerKey(call), call);
    call.responseHeaders[JOB_HEADER] = id;
    if (patience !== undefined) call.responseHeaders["preference-applied"] = "respond-async";
    if (patience !== 0) await finishedInTime(id, patience, call.signal);
    return id;
  }

  /** Chooses where an index is built. @throws LanceError Unsupported for one that can be built nowhere */
  function engineOf(plan: IndexPlan, work: HeavyWork): JobEngineName {
    const reason = cluster === undefined ? undefined : whyNotOnCluster(plan);
    const { needsCluster = false } = kindOf(plan.type);
    if (needsCluster && reason !== undefined) throw new LanceError("Unsupported", reason);
    if (needsCluster) return CLUSTER_ENGINE;
    return reason === undefined ? chooseEngine(cluster, work) : "embedded";
  }

  /** Describes an index of a table, or one that is being built; returns undefined if neither exists. */
  function describeStats(
    { indexName, version, branch }: DescribeTableIndexStatsRequest,
    call: Call,
  ): Promise<DescribeTableIndexStatsResponse | undefined> {
    return withGuarded(context, call, { version, branch }, async (data) => {
      const { found, rowCount, wait } = data;
      const stats = await wait(() => statsOfIndex(context, data, branch, indexName));
      if (stats !== null) {
        return create(DescribeTableIndexStatsResponseSchema, {
          ...stats,
          numIndexedRows: BigInt(stats.numIndexedRows),
          numUnindexedRows: BigInt(stats.numUnindexedRows),
        });
      }
      const plan = version === undefined ? await builds.find(found.location, branch, indexName) : undefined;
      if (plan === undefined) return undefined;
      return create(DescribeTableIndexStatsResponseSchema, {
        indexType: indexKind(plan.type, true).name,
        numIndexedRows: 0n,
        numUnindexedRows: BigInt(await rowCount()),
      });
    });
  }

  /**
   * Waits for a job.
   *
   * @param milliseconds how long at most. Default: until it ends
   * @throws LanceError the error of a job that fails; Cancelled, and the job is cancelled
   */
  async function finishedInTime(
    id: string,
    milliseconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const ended = milliseconds === undefined ? untilEnded(jobs, id) : jobs.ended(id, milliseconds);
      const job = await untilAborted(ended, signal);
      if (job !== undefined) requireSuccess(job);
    } catch (error) {
      if (signal.aborted) await jobs.cancel(id);
      throw error;
    }
  }

  return {
    async createTableIndex(request, call) {
      kindOf(request.indexType);
      const jobId = await createIndex(request, call);
      return create(CreateTableIndexResponseSchema, { ...(jobId !== undefined && { jobId }) });
    },
    async createTableScalarIndex(request, call) {
      if (kindOf(request.indexType).vector) {
        throw new LanceError("InvalidInput", `${request.indexType} is not a scalar index; use create_index`);
      }
      const jobId = await createIndex(request, call);
      return create(CreateTableScalarIndexResponseSchema, { ...(jobId !== undefined && { jobId }) });
    },
    listTableIndices: (request, call) =>
      withGuarded(context, call, request, async (data) => {
        const indices = await data.wait(() => allIndices(context, data, request.branch));
        const byName = new Map(indices.map((index) => [index.name, index]));
        const { entries, ...page } = pageOfNames(context, "indices", byName, request);
        return create(ListTableIndicesResponseSchema, {
          indexes: entries.map(([, index]) => toIndexContent(index)),
          ...page,
        });
      }),
    async describeTableIndexStats(request, call) {
      // An index of a job that ends between the two looks is in the table at the next one.
      const stats = (await describeStats(request, call)) ?? (await describeStats(request, call));
      if (stats === undefined) throw indexNotFound(request.indexName);
      return stats;
    },
    dropTableIndex: ({ indexName, branch }, call) =>
      withGuarded(context, call, { branch }, async ({ found, commit }) => {
        if (isSystemIndex(indexName)) throw indexNotFound(indexName);
        const dataset = datasetOf(context, found, branch);
        await commit(async () => {
          const { version } = await dropIndex(dataset, indexName, call.signal);
          return { version: Number(version) };
        });
        return create(DropTableIndexResponseSchema);
      }),
  };
}

/** The status of a finished index; the list does not contain indices that are being built. */
const STATUS = "SUCCEEDED";

function toIndexContent(index: NativeIndex): IndexContent {
  const { numIndexedRows, numUnindexedRows, sizeBytes, createdAt, indexDetails } = index;
  return create(IndexContentSchema, {
    indexName: index.name,
    indexUuid: index.indexUuid ?? "",
    columns: [...index.columns],
    status: STATUS,
    indexType: indexTypeName(index.indexType),
    ...(index.typeUrl !== undefined && { typeUrl: index.typeUrl }),
    ...(numIndexedRows !== undefined && { numIndexedRows: BigInt(numIndexedRows) }),
    ...(numUnindexedRows !== undefined && { numUnindexedRows: BigInt(numUnindexedRows) }),
    ...(sizeBytes !== undefined && { sizeBytes: BigInt(sizeBytes) }),
    ...(index.numSegments !== undefined && { numSegments: index.numSegments }),
    ...(createdAt !== undefined && { createdAt: createdAt.toISOString() }),
    ...(index.indexVersion !== undefined && { indexVersion: index.indexVersion }),
    ...(indexDetails !== undefined && { indexDetails: asText(indexDetails) }),
  });
}

function asText(details: unknown): string {
  return typeof details === "string" ? details : JSON.stringify(details);
}

/** Returns the fields of the request that describe the index itself. */
function indexFields(request: CreateTableIndexRequest | CreateTableScalarIndexRequest): IndexFields {
  const {
    $typeName: _,
    $unknown: __,
    id,
    identifier,
    delimiter,
    identity,
    context,
    branch,
    column,
    name,
    indexType,
    ...fields
  } = request;
  return fields;
}

/** Returns how long a client waits before it prefers to poll, in milliseconds; undefined if it does not (RFC 7240). */
function patienceOf({ headers }: Call): number | undefined {
  const { prefer = "" } = headers;
  if (!/(?:^|,)\s*respond-async\s*(?:[,;]|$)/i.test(prefer)) return undefined;
  return Number(/(?:^|,)\s*wait\s*=\s*(\d{1,4})\s*(?:[,;]|$)/i.exec(prefer)?.[1] ?? 0) * 1000;
}
