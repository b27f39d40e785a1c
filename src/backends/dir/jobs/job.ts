import type { ErrorName } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";

/** State of a job; the last three are final. */
export type JobState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** Parameters or result of a job: plain JSON. */
export type JobFacts = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Request for a new job. */
export interface JobRequest {
  /** Kind of the work, for example `backfill_column`. */
  readonly kind: string;
  /** Table of the work. */
  readonly table: Identifier;
  readonly spec: JobFacts;
}

/** A stored job. Times are milliseconds since 1970. */
export interface Job extends JobRequest {
  readonly id: string;
  readonly state: JobState;
  readonly createdAt: number;
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
  readonly error?:
    | { readonly name: ErrorName | string; readonly code: number; readonly message: string }
    | undefined;
}
