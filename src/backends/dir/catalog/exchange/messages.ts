import { type ErrorName, LanceError, type LimitName } from "../../../../namespace/errors.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import type { Row } from "../state/row.ts";
import type { RowAddress } from "../state/rows/stored-row.ts";
import type { SharedState } from "../state/state.ts";
import type { Changes, Verdict } from "../state/view.ts";
import type { Observation } from "./observed-view.ts";

/** A mutation as a worker has decided it on its own state; it counts wherever its observations hold. */
export interface Decided {
  readonly observations: readonly Observation[];
  /** Rows to put, and ids of rows to delete. */
  readonly changes: readonly (readonly [objectId: string, row: Row | undefined])[];
  readonly recorded: readonly (readonly [changeId: string, verdict: Verdict])[];
  /** When it was decided. */
  readonly at: Instant;
}

/** A version that the committing worker has made, for the states of the others. */
export interface MadeVersion {
  /** The version that it follows. */
  readonly base: number;
  readonly version: number;
  readonly changes: Changes;
  readonly addresses: ReadonlyMap<string, RowAddress>;
  readonly file: { readonly key: string; readonly bytes: Uint8Array };
}

/** A version as the committing worker has it in memory. */
export interface SharedVersion {
  readonly version: number;
  readonly state: SharedState;
}

/** Messages to the worker that commits. */
export type ToCommitter =
  | { readonly type: "commit"; readonly id: number; readonly decided: Decided }
  /** Asks for an answer when the running commit, if there is one, has been told. */
  | { readonly type: "catch up"; readonly id: number }
  /** Asks for the newest version. */
  | { readonly type: "share"; readonly id: number }
  /** The verdict of a change can be removed. */
  | { readonly type: "forget"; readonly changeId: string };

/** Outcome of a mutation that another worker has decided. */
export type RemoteOutcome =
  | "committed"
  /** An observation did not hold. */
  | "stale"
  /** It waited longer than a decision counts. */
  | "late"
  /** The worker commits no more; nothing was tried. */
  | "closed"
  | PlainError;

/** Messages from the worker that commits. */
export type FromCommitter =
  | { readonly type: "outcome"; readonly id: number; readonly outcome: RemoteOutcome }
  | { readonly type: "caught up"; readonly id: number }
  /** Without a version if the worker cannot read it, or if it has none. */
  | { readonly type: "shared"; readonly id: number; readonly shared: SharedVersion | undefined }
  | { readonly type: "made"; readonly made: MadeVersion };

/** An error as plain data. */
export interface PlainError {
  /** Row of the error table; undefined for an error that clients do not see. */
  readonly kind: ErrorName | undefined;
  readonly message: string;
  readonly stack: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly limit: LimitName | undefined;
  /** Whether a loss of power may undo the change. */
  readonly isUnsynced: boolean;
}

/** A time by both clocks, which all threads of a process share. In milliseconds. */
interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function now(): Instant {
  return { wall: Date.now(), monotonic: Number(process.hrtime.bigint() / 1_000_000n) };
}

/**
 * Returns the milliseconds since an instant by the clock that counted more: the monotonic one does not advance while the
 * machine sleeps, and the other one can be set back.
 */
export function ageOf({ wall, monotonic }: Instant): number {
  const { wall: wallNow, monotonic: monotonicNow } = now();
  return Math.max(wallNow - wall, monotonicNow - monotonic);
}

/** Returns an error as data that another thread can receive. */
export function toPlain(error: unknown): PlainError {
  const known = error instanceof LanceError ? error : undefined;
  return {
    kind: known?.kind,
    message: error instanceof Error ? error.message : String(error),
    stack: error instanceof Error ? error.stack : undefined,
    headers: known?.headers ?? {},
    limit: known?.limit,
    isUnsynced: error instanceof UnsyncedError,
  };
}

/** Returns the error of {@link toPlain}; its cause is the error in the other thread. */
export function fromPlain({ kind, message, stack, headers, limit, isUnsynced }: PlainError): Error {
  const cause = Object.assign(new Error(message), stack !== undefined && { stack });
  if (isUnsynced) return new UnsyncedError(cause);
  return kind === undefined ? cause : new LanceError(kind, message, { headers, limit, cause });
}
