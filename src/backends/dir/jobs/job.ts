import { type ErrorName, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";

/** State of a job; the last three are final. */
export type JobState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** Parameters or result of a job: plain JSON. */
export type JobFacts = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Request for a new job. */
export interface JobRequest {
  /** Kind of the work, for example `backfill_column`. */
  readonly kind: string;
  /** Table of the work, by its name at that time. */
  readonly table: Identifier;
  readonly spec: JobFacts;
  /** Digest of the caller who started it, for stores whose jobs go on with the rights of that caller. Default: the gateway's own rights do. */
  readonly startedBy?: string | undefined;
}

/** A change of a job's state. */
export interface JobEvent {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly state: JobState;
  /** Process that made the change. */
  readonly by: string;
  /** Error of a failure. */
  readonly message?: string | undefined;
}

/** A stored job. Times are milliseconds since 1970. */
export interface Job extends JobRequest {
  readonly id: string;
  readonly state: JobState;
  readonly createdAt: number;
  /** Trace of the call that asked for it. Default: none did, or it was not traced. */
  readonly traceParent?: string | undefined;
  readonly startedAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  /** Number of times that a process took it over. */
  readonly attempts: number;
  /**
   * Number of times that its work started and did not end: recorded before the work starts, and taken back on a
   * close.
   */
  readonly begun?: number | undefined;
  /** Process that runs the job, and the end of its lease; without a lease, any process may take the job. */
  readonly lease?: { readonly owner: string; readonly until: number } | undefined;
  readonly result?: JobFacts | undefined;
  /** History of the states, the oldest first. Default: the job is older than histories. */
  readonly events?: readonly JobEvent[] | undefined;
  readonly error?:
    | { readonly name: ErrorName | string; readonly code: number; readonly message: string }
    | undefined;
}

/** Facts about a job in a list; of the spec, the location of the table and the engine. */
export type JobSummary = Pick<Job, "id" | "kind" | "table" | "spec" | "state" | "createdAt" | "finishedAt">;

/** Returns the number of times that the work of a job started and did not end. */
export function begunOf({ begun, state }: Pick<Job, "begun" | "state">): number {
  return begun ?? (state === "running" ? 1 : 0);
}

/** Names of the engines that do the heavy work of jobs. */
export const JOB_ENGINES = ["embedded", "ray"] as const;

/** Name of an engine: this process, or a Ray cluster. */
export type JobEngineName = (typeof JOB_ENGINES)[number];

/** The engine of work on a cluster. */
export const CLUSTER_ENGINE = "ray" satisfies JobEngineName;

/** Returns the engine that a job was submitted for. */
export function engineOf({ spec }: Pick<Job, "spec">): JobEngineName {
  return spec["engine"] === CLUSTER_ENGINE ? CLUSTER_ENGINE : "embedded";
}

/** Whether a job was submitted for a cluster. */
export function isForCluster(job: Pick<Job, "spec">): boolean {
  return engineOf(job) === CLUSTER_ENGINE;
}

/** Errors of a passing state, after which the work may succeed later. */
const PASSING: ReadonlySet<string> = new Set(["ConcurrentModification", "ServiceUnavailable", "Throttling"]);

/** Whether a job failed for a reason that may pass. */
export function mayPass({ error }: Pick<Job, "error">): boolean {
  return error !== undefined && PASSING.has(error.name);
}

/** Returns the result of a job that has ended. @throws LanceError its error; Cancelled */
export function requireSuccess({ state, error, result = {} }: Job): JobFacts {
  if (state === "cancelled") throw new LanceError("Cancelled", "the job was cancelled");
  if (error !== undefined) throw new LanceError(error.name as ErrorName, error.message);
  return result;
}

/** Maximum number of events that a job keeps; the newest take the place of the oldest after the first. */
const MAX_EVENTS = 100;

/** Adds the state of a job to its history. */
export function withEvent(job: Job, at: number, by: string): Job {
  const { state, error, events = [] } = job;
  const event: JobEvent = { at, state, by, ...(error !== undefined && { message: error.message }) };
  return { ...job, events: [...events.slice(0, 1), ...events.slice(1).slice(2 - MAX_EVENTS), event] };
}
