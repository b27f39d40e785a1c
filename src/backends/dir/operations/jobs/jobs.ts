import { create, type JsonObject } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../../arrow/ipc/ipc-forms.ts";
import {
  CancelJobResponseSchema,
  DescribeJobResponseSchema,
  JobSummarySchema,
  ListJobsResponseSchema,
  QueryJobEventsResponseSchema,
} from "../../../../gen/lance/gateway/v1/job_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, parseIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import {
  CLUSTER_ENGINE,
  isForCluster,
  type Job,
  type JobFacts,
  type JobState,
  type JobSummary,
  mayPass,
} from "../../jobs/job.ts";
import { BACKFILL_COLUMN } from "../columns/backfill.ts";
import type { EngineContext, JobContext, PageContext } from "../context.ts";
import { CREATE_FUNCTION } from "../functions/functions.ts";
import { requireOwner } from "../functions/require-owner.ts";
import { pageOfNames } from "../paging.ts";
import { REFRESH_VIEW } from "../views/submit.ts";

/** The states of jobs in the words of LanceDB's clients. */
const STATES: Readonly<Record<JobState, string>> = {
  queued: "IN_PROGRESS",
  running: "IN_PROGRESS",
  succeeded: "DONE",
  failed: "FAILED",
  cancelled: "CANCELLED",
};

/** The modes of a refresh in the words of LanceDB's clients. */
const MODES: Readonly<Record<string, string>> = {
  none: "no_op",
  incremental: "incremental",
  full: "rebuild",
};

/** The results of the kinds of jobs that LanceDB's clients read as a type of their own. */
const RESULTS: Readonly<Record<string, (result: JobFacts) => JsonObject>> = {
  [BACKFILL_COLUMN]: ({ rows = 0, rowsFailed = 0, sourceVersion = null, version = null }) => ({
    rows_assigned: rows,
    rows_failed: rowsFailed,
    rows_remaining: rowsFailed,
    source_version: sourceVersion,
    published_version: version,
  }),
  [CREATE_FUNCTION]: ({ definition }) => JSON.parse(String(definition)) as JsonObject,
  [REFRESH_VIEW]: ({ mode, rows = 0, sourceVersion = null, version = null }) => ({
    mode: MODES[String(mode)] ?? "rebuild",
    rows_written: rows,
    source_version: sourceVersion,
    version,
  }),
};

/** Maximum number of lines of a log in an answer. */
const MAX_LOG_LINES = 1_000;

/** The calls by which LanceDB's remote clients follow jobs. */
export type JobExtensions = Pick<
  LanceDbExtensions,
  "listJobs" | "describeJob" | "cancelJob" | "queryJobEvents"
>;

/** Recorded jobs, and the names of their tables. */
export interface RecordedJobs extends Pick<EngineContext, "cluster">, PageContext {
  readonly jobs: Pick<JobContext["jobs"], "get" | "list" | "cancel">;
  readonly catalog: { read(): Promise<Pick<CatalogView, "ownerOf">> };
}

/** Creates the calls by which LanceDB's remote clients follow jobs, in any process and after a restart. */
export function createJobExtensions(context: RecordedJobs): JobExtensions {
  const { catalog, jobs, cluster } = context;

  async function requireJob(id: string): Promise<Job> {
    const job = await jobs.get(id);
    if (job === undefined)
      throw new LanceError("TransactionNotFound", `there is no job ${JSON.stringify(id)}`);
    return job;
  }

  /** Returns the last lines of the log of work on a cluster. Values of rows and what functions print may be in it. */
  async function logOf(jobId: string, lines: number, call: Call): Promise<string> {
    await requireOwner(call, "logs of work on a cluster");
    if (lines < 0 || lines > MAX_LOG_LINES)
      throw new LanceError("InvalidInput", `log_lines must be between 0 and ${MAX_LOG_LINES}`);
    if (cluster === undefined)
      throw new LanceError("Unsupported", "this process has no cluster; ask a gateway with --job-engine ray");
    return (await cluster.engine.logs(jobId)).trimEnd().split("\n").slice(-lines).join("\n");
  }

  return {
    async listJobs(request) {
      const found = new Map((await jobs.list()).map((job) => [orderOf(job), job]));
      const { entries, ...page } = pageOfNames(context, "jobs", found, request);
      const tables = await catalog.read();
      return create(ListJobsResponseSchema, {
        ...page,
        jobs: entries.map(([, job]) =>
          create(JobSummarySchema, {
            jobId: job.id,
            table: joinIdentifier(tableOf(tables, job)),
            jobType: job.kind,
            state: STATES[job.state],
            createdAtMillis: BigInt(job.createdAt),
            ...(job.finishedAt !== undefined && { endedAtMillis: BigInt(job.finishedAt) }),
            ...(isForCluster(job) && { engine: CLUSTER_ENGINE }),
          }),
        ),
      });
    },
    async describeJob({ jobId, logLines = 0 }, call) {
      const job = await requireJob(jobId);
      // It shows what only an owner may list.
      if (job.kind === CREATE_FUNCTION) await requireOwner(call);
      const { id, kind, state, createdAt, spec, result, error } = job;
      const engine = isForCluster(job) ? CLUSTER_ENGINE : undefined;
      const progress = engine && (await cluster?.records.progressOf(id));
      return create(DescribeJobResponseSchema, {
        jobId: id,
        jobType: kind,
        jobState: STATES[state],
        creationMs: BigInt(createdAt),
        spec: kind === CREATE_FUNCTION ? { name: job.table.at(-1) ?? "" } : jsonOf(spec),
        ...(result !== undefined && { result: RESULTS[kind]?.(result) ?? jsonOf(result) }),
        ...(engine !== undefined && { engine }),
        ...(progress !== undefined && { progress }),
        ...(engine !== undefined && logLines !== 0 && { log: await logOf(id, logLines, call) }),
        ...(error !== undefined && {
          failure: { message: error.message, retryable: mayPass({ error }) },
        }),
      });
    },
    async *queryJobEvents({ jobId, filter, limit }) {
      const { eventsOf } = await import("./job-events.ts");
      const data = eventsOf(await requireJob(jobId), filter, limit);
      yield create(QueryJobEventsResponseSchema, { data: { contentType: ARROW_STREAM, data } });
    },
    async cancelJob({ jobId }) {
      await jobs.cancel((await requireJob(jobId)).id);
      return create(CancelJobResponseSchema);
    },
  };
}

/** Returns the table of a job by its present name, or by the former one if the table is gone. */
export function tableOf(
  tables: Pick<CatalogView, "ownerOf">,
  { table, spec: { location } }: Pick<JobSummary, "table" | "spec">,
): Identifier {
  const owner = typeof location === "string" ? tables.ownerOf(location) : undefined;
  return owner === undefined ? table : parseIdentifier(owner);
}

/** Orders jobs by their age; the id tells those of one millisecond apart. */
function orderOf({ createdAt, id }: JobSummary): string {
  return `${String(Math.trunc(createdAt)).padStart(16, "0")}-${id}`;
}

function jsonOf(facts: JobFacts): JsonObject {
  return JSON.parse(JSON.stringify(facts)) as JsonObject;
}
