import { LanceError } from "../../namespace/errors.ts";
import { pagesOf } from "../../namespace/page-progress.ts";
import type { Connection } from "../session/connection.ts";

/** Work on a table in the background. */
export interface Job {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly isEnded: boolean;
  /** Time of its start, in milliseconds since 1970. */
  readonly since: number;
  /** Time of its end. Default: it goes on, or the catalog does not tell. */
  readonly until?: number | undefined;
  /** How far it is. Default: its engine does not tell. */
  readonly progress?: JobProgress | undefined;
  /** The cluster that does the work. Default: the gateway does it. */
  readonly engine?: string | undefined;
}

/** How far a job is. */
export interface JobProgress {
  /** What it does at the moment, in words. */
  readonly step: string;
  /** Parts of the step that are done. Default: 0. */
  readonly done?: number;
  /** Parts of the step. Default: their number is not known. */
  readonly total?: number;
}

interface JobPage {
  readonly jobs: readonly {
    readonly job_id: string;
    readonly table: string;
    readonly job_type: string;
    readonly state: string;
    readonly created_at_millis: number;
    readonly ended_at_millis?: number;
    readonly engine?: string;
  }[];
  readonly page_token?: string;
}

/** Most jobs that are shown, the newest. */
const MOST_JOBS = 20;

const WORDS: Readonly<Record<string, string>> = {
  IN_PROGRESS: "in progress",
  DONE: "done",
  FAILED: "failed",
  CANCELLED: "cancelled",
};

/**
 * Returns the newest jobs of a table, the newest first. They are in the REST API only.
 *
 * @throws LanceError Unsupported, if the catalog has no jobs; ServiceUnavailable for pages that do not go on
 */
export async function listJobs(
  connection: Pick<Connection, "fetch">,
  id: readonly string[],
  signal: AbortSignal,
): Promise<readonly Job[]> {
  const table = id.join("$");
  async function read(token: string | undefined) {
    const response = await post(connection, "list", token === undefined ? {} : { page_token: token }, signal);
    if (!response.ok) throw new LanceError("Unsupported", "the catalog lists no jobs");
    const { jobs, page_token } = (await response.json()) as JobPage;
    return { jobs, pageToken: page_token };
  }
  let found: readonly JobPage["jobs"][number][] = [];
  for await (const { jobs } of pagesOf(read))
    found = [...found, ...jobs.filter((job) => job.table === table)].slice(-MOST_JOBS);
  return Promise.all(
    found
      .toReversed()
      .map(async ({ job_id, job_type, state, created_at_millis, ended_at_millis, engine }) => ({
        ...{ id: job_id, engine },
        kind: job_type.replaceAll("_", " "),
        state: WORDS[state] ?? state.toLowerCase(),
        isEnded: state !== "IN_PROGRESS",
        since: created_at_millis,
        until: ended_at_millis,
        progress: state === "IN_PROGRESS" ? await progressOf(connection, job_id, signal) : undefined,
      })),
  );
}

/** Returns how far a job is; nothing if its engine does not tell, or the job has gone. */
async function progressOf(
  connection: Pick<Connection, "fetch">,
  jobId: string,
  signal: AbortSignal,
): Promise<JobProgress | undefined> {
  const response = await post(connection, "describe", { job_id: jobId }, signal);
  if (!response.ok) return undefined;
  return ((await response.json()) as { readonly progress?: JobProgress }).progress;
}

/** Number of lines of a log that are shown, the last ones. */
const LOG_LINES = 200;

/** Returns the end of the log of a job's work on a cluster. @throws LanceError PermissionDenied, as the catalog says it */
export async function readLog(
  connection: Pick<Connection, "fetch">,
  jobId: string,
  signal: AbortSignal,
): Promise<string> {
  const response = await post(connection, "describe", { job_id: jobId, log_lines: LOG_LINES }, signal);
  if (!response.ok) throw await failureOf(response, "the log cannot be read");
  return ((await response.json()) as { readonly log?: string }).log ?? "";
}

/** Ends a job before its time; what it has done so far is not kept. */
export async function cancelJob(connection: Pick<Connection, "fetch">, jobId: string): Promise<void> {
  const response = await post(connection, "cancel", { job_id: jobId });
  if (!response.ok) throw await failureOf(response, "the job cannot be cancelled");
}

/** Calls an operation of jobs. */
function post(
  connection: Pick<Connection, "fetch">,
  operation: "list" | "describe" | "cancel",
  request: object,
  signal?: AbortSignal,
): Promise<Response> {
  return connection.fetch(`/v1/jobs/${operation}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
    ...(signal && { signal }),
  });
}

/** Returns the error of an answer, in the catalog's words if it has some. */
async function failureOf(response: Response, what: string): Promise<LanceError> {
  const { error } = (await response.json().catch(() => ({}))) as { readonly error?: string };
  return new LanceError("Internal", error ?? `${what}: ${response.status}`);
}
