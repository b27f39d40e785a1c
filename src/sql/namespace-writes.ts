import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { CreateTableMode, InsertMode } from "../gen/lance/namespace/v1/data_pb.ts";
import { MaterializedViewKind } from "../gen/lance/namespace/v1/view_pb.ts";
import { isLanceError, LanceError } from "../namespace/errors.ts";
import type { NewView, SqlWrites } from "./sql-engine.ts";

interface WriteOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An object that a call changes. */
interface Named {
  readonly id: string[];
}

/** What statements change tables by: a part of a namespace, of which each operation writes as its caller. */
export interface WritableNamespace {
  createTable(
    request: Named & { readonly mode: CreateTableMode },
    rows: AsyncIterable<Uint8Array>,
    options: WriteOptions,
  ): Promise<unknown>;
  insertIntoTable(
    request: Named & { readonly mode: InsertMode },
    rows: AsyncIterable<Uint8Array>,
    options: WriteOptions,
  ): Promise<unknown>;
  updateTable(
    request: Named & {
      readonly predicate: string;
      readonly updates: { readonly column: string; readonly expression: string }[];
    },
    options: WriteOptions,
  ): Promise<{ readonly updatedRows: bigint }>;
  deleteFromTable(
    request: Named & { readonly predicate: string },
    options: WriteOptions,
  ): Promise<{ readonly numDeletedRows?: bigint | undefined }>;
  dropTable(request: Named, options: WriteOptions): Promise<unknown>;
  /** @param schema columns of the view's result. Default: there are no views. */
  createView?(
    request: Named &
      Pick<NewView, "query"> & {
        readonly defaultNamespace: string[];
        readonly defaultRoot: boolean;
        readonly replace: boolean;
      },
    options: WriteOptions,
    schema: Uint8Array,
  ): Promise<unknown>;
  /** Default: there are no views. */
  dropView?(request: Named, options: WriteOptions): Promise<unknown>;
  /** Default: there are no materialized views. */
  createMaterializedView?(
    request: Named & {
      readonly kind: MaterializedViewKind;
      readonly sourceQuery: string;
      readonly withNoData: boolean;
      readonly autoRefresh: boolean;
    },
    options: WriteOptions,
  ): Promise<Submitted>;
  /** Default: there are no materialized views. */
  refreshMaterializedView?(
    request: Named & { readonly full: boolean },
    options: WriteOptions,
  ): Promise<Submitted>;
  /** Default: there are no materialized views. */
  dropMaterializedView?(request: Named, options: WriteOptions): Promise<unknown>;
  /** Default: nothing tells when a materialized view is filled. */
  describeJob?(request: { readonly jobId: string }, options: WriteOptions): Promise<DescribedJob>;
}

/** A call whose work goes on as a job, if it has one. */
interface Submitted {
  readonly jobId?: string | undefined;
}

const MODES = {
  refuse: CreateTableMode.CREATE,
  replace: CreateTableMode.OVERWRITE,
  keep: CreateTableMode.EXIST_OK,
} as const;

/** Options of {@link writesToNamespace}. */
export interface WritesOptions {
  /** Name of the database that the namespace is of. Default: names have no database. */
  readonly database?: string | undefined;
  /** Key by which a statement that is sent again changes nothing more. Default: it changes the tables again. */
  readonly idempotencyKey?: string | undefined;
}

/** Returns the changes to a namespace that statements make. */
export function writesToNamespace(
  namespace: WritableNamespace,
  { database, idempotencyKey }: WritesOptions = {},
): SqlWrites {
  let calls = 0;
  /** Each call of a statement has a key of its own. */
  const options = (signal: AbortSignal): WriteOptions => {
    if (idempotencyKey === undefined) return { signal };
    const key = calls === 0 ? idempotencyKey : `${idempotencyKey}.${calls}`;
    calls++;
    return { signal, headers: { "idempotency-key": key } };
  };
  /** Waits for the job of a call, and returns the number of rows that it has written. */
  async function ended({ jobId }: Submitted, signal: AbortSignal): Promise<bigint> {
    const { describeJob } = namespace;
    if (!jobId || describeJob === undefined) return 0n;
    try {
      return await jobEnd(jobId, (id) => describeJob({ jobId: id }, { signal }), signal);
    } catch (thrown) {
      // An upstream of another protocol has no call that tells.
      if (isLanceError(thrown, "Unsupported")) return 0n;
      throw thrown;
    }
  }
  return {
    database,
    async create(path, existing, rows, signal) {
      await namespace.createTable({ id: [...path], mode: MODES[existing] }, rows, options(signal));
    },
    async insert(path, rows, signal) {
      await namespace.insertIntoTable({ id: [...path], mode: InsertMode.APPEND }, rows, options(signal));
    },
    async update(path, { predicate, assignments }, signal) {
      const request = { id: [...path], predicate, updates: [...assignments] };
      return (await namespace.updateTable(request, options(signal))).updatedRows;
    },
    async delete(path, predicate, signal) {
      const response = await namespace.deleteFromTable({ id: [...path], predicate }, options(signal));
      return response.numDeletedRows;
    },
    async drop(path, signal) {
      await namespace.dropTable({ id: [...path] }, options(signal));
    },
    async createView({ path, query, namespacePath, schema, replaces }, signal) {
      if (namespace.createView === undefined) throw noViews();
      const defaults = {
        defaultNamespace: [...namespacePath],
        defaultRoot: namespacePath.length === 0,
      };
      const request = { id: [...path], query, ...defaults, replace: replaces };
      await namespace.createView(request, options(signal), schema);
    },
    async dropView(path, signal) {
      if (namespace.dropView === undefined) throw noViews();
      await namespace.dropView({ id: [...path] }, options(signal));
    },
    async createMaterializedView({ path, query, autoRefresh }, signal) {
      if (namespace.createMaterializedView === undefined) throw noMaterializedViews();
      const request = {
        ...{ id: [...path], kind: MaterializedViewKind.QUERY, sourceQuery: query },
        ...{ withNoData: false, autoRefresh },
      };
      return ended(await namespace.createMaterializedView(request, options(signal)), signal);
    },
    async refreshMaterializedView(path, full, signal) {
      if (namespace.refreshMaterializedView === undefined) throw noMaterializedViews();
      return ended(await namespace.refreshMaterializedView({ id: [...path], full }, options(signal)), signal);
    },
    async dropMaterializedView(path, signal) {
      if (namespace.dropMaterializedView === undefined) throw noMaterializedViews();
      await namespace.dropMaterializedView({ id: [...path] }, options(signal));
    },
  };
}

function noMaterializedViews(): LanceError {
  return new LanceError("Unsupported", "materialized views are not supported here");
}

function noViews(): LanceError {
  return new LanceError("Unsupported", "views are not supported here");
}

/** A job, as DescribeJob tells it. */
export interface DescribedJob {
  readonly jobState: string;
  readonly result?: JsonObject | undefined;
  readonly failure?: { readonly message: string; readonly retryable: boolean } | undefined;
}

/** A job that cannot be looked at for now may go on. */
const UNSEEN: DescribedJob = { jobState: "IN_PROGRESS" };

/** Time between the first two looks at a job, and the longest one, in milliseconds. */
const FIRST_MS = 20;
const MOST_MS = 1_000;

/**
 * Waits until the job that fills a view has ended, and returns the number of rows that it has written. The job goes on if the wait ends early.
 *
 * @throws LanceError InvalidTableState for a job that has failed, Cancelled for a cancelled one, and OutcomeUnknown if nothing tells how it ends.
 *   None of them invites a client to repeat the statement, which has begun the job.
 */
export async function jobEnd(
  jobId: string,
  describe: (jobId: string) => Promise<DescribedJob>,
  signal: AbortSignal,
): Promise<bigint> {
  for (let delay = FIRST_MS; ; delay = Math.min(delay * 2, MOST_MS)) {
    const job = (await look(jobId, describe, signal)) ?? UNSEEN;
    switch (job.jobState) {
      case "IN_PROGRESS":
        await sleep(delay, undefined, { signal }).catch((cause) => {
          throw signal.reason instanceof LanceError ? signal.reason : cancelled(cause);
        });
        break;
      case "DONE":
        return rowsOf(job.result);
      case "FAILED":
        throw new LanceError(
          "InvalidTableState",
          `the refresh by job ${jobId} has failed: ${failureOf(job)}`,
        );
      case "CANCELLED":
        throw new LanceError("Cancelled", `the refresh by job ${jobId} was cancelled`);
      default:
        throw unknown(jobId, `its state is ${job.jobState}`);
    }
  }
}

/** Returns the job; undefined if it cannot be looked at for now. @throws LanceError the reason of the signal; OutcomeUnknown; Unsupported */
async function look(
  jobId: string,
  describe: (jobId: string) => Promise<DescribedJob>,
  signal: AbortSignal,
): Promise<DescribedJob | undefined> {
  try {
    return await describe(jobId);
  } catch (thrown) {
    if (signal.aborted || isLanceError(thrown, "Unsupported")) throw thrown;
    if (isLanceError(thrown, "Throttling") || isLanceError(thrown, "ServiceUnavailable")) return undefined;
    throw unknown(jobId, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }
}

function rowsOf(result: JsonObject | undefined): bigint {
  const rows = Number(result?.["rows_written"] ?? 0);
  return Number.isSafeInteger(rows) ? BigInt(rows) : 0n;
}

function failureOf({ failure }: DescribedJob): string {
  const { message = "the job does not say why", retryable = false } = failure ?? {};
  return retryable ? `${message}; the view is there, and may be refreshed again` : message;
}

function unknown(jobId: string, reason: string, cause?: unknown): LanceError {
  const message = `job ${jobId} refreshes the view, and how it ends is not known: ${reason}`;
  return new LanceError("OutcomeUnknown", message, { cause });
}

function cancelled(cause: unknown): LanceError {
  return new LanceError("Cancelled", "the statement was cancelled; the refresh goes on", { cause });
}
