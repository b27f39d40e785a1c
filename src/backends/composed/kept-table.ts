import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import type { FoundTable } from "../dir/data/table-source.ts";

/** The use of a table that goes on after its call, with the rights of the call's caller. */
export interface KeptTable {
  readonly table: FoundTable;
  /** Whether the upstream still has the table there. @throws LanceError the errors of the upstream */
  isThere(): Promise<boolean>;
  /** Renews the credentials of the storage if it is time. Returns what is left of them; undefined if they do not expire. */
  renew(): Promise<CredentialsLeft | undefined>;
  release(): void;
}

/** Remaining life of credentials. */
export interface CredentialsLeft {
  /** When they end, in epoch milliseconds. */
  readonly ends: number;
  /** How long they are valid, in milliseconds. */
  readonly life: number;
  /** Why the last renewal failed, or that there can be none; undefined if it did not fail. */
  readonly failure?: string | undefined;
}

/** Longest interval between looks at a table on which a job works, in milliseconds, and the shortest one. */
const LOOK_MS = 10_000;
const MIN_LOOK_MS = 200;

/** Longest time for which a job goes on while the upstream does not describe its table, in milliseconds. */
const MAX_UNSEEN_MS = 15 * 60_000;

/** Time before the end of credentials at which a job gives up, so that its record can still be written: a part of their life, and a bound in milliseconds. */
const RESERVE_SHARE = 0.1;
const MAX_RESERVE_MS = 5_000;

/**
 * Looks after the use of a table by a job, until it ends: whether the upstream still has the table, and whether the credentials can be renewed.
 *
 * @param stop called once if the job has to fail, with the reason, and whether the table is gone
 * @returns ends the watch
 */
export function watchKept(kept: KeptTable, stop: (reason: LanceError, isGone: boolean) => void): () => void {
  let seenAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  /** Returns why the job has to fail, if it has to, and the time until the next look, in milliseconds. */
  async function look(): Promise<{ reason?: LanceError; isGone?: boolean; nextMs: number }> {
    const left = await kept.renew().catch((error: unknown) => ({ ends: 0, life: 0, failure: textOf(error) }));
    const reserve = Math.min(MAX_RESERVE_MS, (left?.life ?? 0) * RESERVE_SHARE);
    const leftMs = left === undefined ? Number.POSITIVE_INFINITY : left.ends - Date.now() - reserve;
    const nextMs = Math.max(MIN_LOOK_MS, Math.min(LOOK_MS, leftMs / 4));
    if (left?.failure !== undefined && leftMs < 2 * MIN_LOOK_MS)
      return { reason: noCredentials(left), nextMs };
    try {
      if (!(await kept.isThere())) return { reason: gone(kept.table), isGone: true, nextMs };
      seenAt = performance.now();
    } catch (error) {
      if (isLanceError(error, "PermissionDenied")) return { reason: denied(error), nextMs };
      // Until its credentials end, a job goes on without the upstream, as calls do.
      if (left === undefined && performance.now() - seenAt > MAX_UNSEEN_MS)
        return { reason: unseen(error), nextMs };
    }
    return { nextMs };
  }
  async function lookAgain(): Promise<void> {
    const { reason, isGone = false, nextMs } = await look();
    if (isOver) return;
    if (reason === undefined) schedule(nextMs);
    else stop(reason, isGone);
  }
  function schedule(ms: number): void {
    timer = setTimeout(() => void lookAgain(), ms).unref();
  }
  schedule(MIN_LOOK_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Creates the error of work on a table that the upstream does not have any more. */
export function gone({ id }: Pick<FoundTable, "id">): LanceError {
  return new LanceError(
    "TableNotFound",
    `the upstream catalog has no table ${JSON.stringify(joinIdentifier(id))} at this location any more`,
  );
}

function noCredentials({ failure }: CredentialsLeft): LanceError {
  const text = `the storage credentials of the caller who started the job end, and cannot be renewed: ${failure}`;
  return new LanceError("Unauthenticated", text);
}

function denied(error: LanceError): LanceError {
  const text = `the upstream catalog denies the table to the caller who started the job: ${error.message}`;
  return new LanceError("PermissionDenied", text);
}

function unseen(error: unknown): LanceError {
  const text = `the upstream catalog has not described the table for ${MAX_UNSEEN_MS / 60_000} minutes: ${textOf(error)}`;
  return new LanceError("ServiceUnavailable", text);
}
