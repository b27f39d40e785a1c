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
import { type ErrorName, LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { NativeIndex } from "../../engine/native/index.ts";
import type { PageContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { openGuarded, withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { allIndices, isSystemIndex, statsOfIndex } from "./all-indices.ts";
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
  context: ChangeContext & PageContext,
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

  jobs.define(CREATE_INDEX, async (job, signal) => {
    const plan = planOf(job);
    await builds.reserve(plan, () => builds.build(job.table, plan, signal, job.attempts > 1));
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
    const fields = checkIndexFields(indexKind(indexType), indexFields(request));
    const table = await requireTable(context, call.id);
    const data = await openGuarded(context, call, { branch }, table);
    let plan: IndexPlan = { location: table.location, branch, column, name, type: indexType, fields };
    try {
      plan = await data.wait(() => planIndex(context, data, plan));
    } finally {
      data.release();
    }
    if ((await builds.find(plan.location, branch, plan.name)) !== undefined) throw indexExists(plan.name);
    const patience = patienceOf(call);
    if (patience === undefined) {
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
    };
    const { id } = await jobs.submit({ kind: CREATE_INDEX, table: call.id, spec }, callerKey(call));
    call.responseHeaders[JOB_HEADER] = id;
    call.responseHeaders["preference-applied"] = "respond-async";
    if (patience > 0) await finishedInTime(id, patience, call.signal);
    return id;
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
        indexType: indexKind(plan.type).name,
        numIndexedRows: 0n,
        numUnindexedRows: BigInt(await rowCount()),
      });
    });
  }

  /** Waits for a job. @throws LanceError the error of a job that fails; Cancelled, and the job is cancelled */
  async function finishedInTime(id: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    try {
      const job = await untilAborted(jobs.ended(id, milliseconds), signal);
      if (job?.state === "cancelled") throw new LanceError("Cancelled", "the job was cancelled");
      if (job?.error !== undefined) throw new LanceError(job.error.name as ErrorName, job.error.message);
    } catch (error) {
      if (signal.aborted) await jobs.cancel(id);
      throw error;
    }
  }

  return {
    async createTableIndex(request, call) {
      indexKind(request.indexType);
      const jobId = await createIndex(request, call);
      return create(CreateTableIndexResponseSchema, { ...(jobId !== undefined && { jobId }) });
    },
    async createTableScalarIndex(request, call) {
      if (indexKind(request.indexType).vector) {
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
      withGuarded(context, call, { branch }, async ({ table, commit }) => {
        if (isSystemIndex(indexName)) throw indexNotFound(indexName);
        await commit(async () => {
          await table.dropIndex(indexName);
          return { version: await table.version() };
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

function indexNotFound(name: string): LanceError {
  return new LanceError("TableIndexNotFound", `index ${JSON.stringify(name)} does not exist`);
}
