import type { ErrorName } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";

/** Where a job is in its life; the last three are final. */
export type JobState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** What a job is to do, or what came of it: plain JSON. */
export type JobFacts = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** What is asked of a new job. */
export interface JobRequest {
  /** What kind of work it is, for example `backfill_column`. */
  readonly kind: string;
  /** The table that it works on. */
  readonly table: Identifier;
  readonly spec: JobFacts;
}

/** A job as it is stored. Times are milliseconds since 1970. */
export interface Job extends JobRequest {
  readonly id: string;
  readonly state: JobState;
  readonly createdAt: number;
  readonly startedAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  /** How often a process took it up. */
  readonly attempts: number;
  /** How often its work was begun and did not end: written before the work begins, and taken back by a close. */
  readonly begun?: number | undefined;
  /** The process that has it in hand, and until when nobody else may take it; none is free to be taken. */
  readonly lease?: { readonly owner: string; readonly until: number } | undefined;
  readonly result?: JobFacts | undefined;
  readonly error?:
    | { readonly name: ErrorName | string; readonly code: number; readonly message: string }
    | undefined;
}
