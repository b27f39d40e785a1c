import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import { StateMismatch } from "../manifest/commit-plan.ts";
import { NothingCommitted } from "../manifest/prepared-commit.ts";
import { StateChanged } from "../state/steps.ts";
import type { GroupCommits } from "./commit-group.ts";
import type { CommitGroup } from "./commit-queue.ts";

/** Counts of commits since the start. */
export interface CommitCounts {
  groups: number;
  changes: number;
  retries: number;
}

/** Options of {@link withRetries}. */
export interface RetryOptions {
  /** Maximum number of retries after another process won. */
  readonly maxRetries: number;
  readonly counts: CommitCounts;
  /** Called when the state in memory does not fit the manifest; it is read again for the next attempt. */
  readonly onMismatch: (error: unknown) => void;
}

/** Commits each group until it is committed or fails. It throws LanceError ConcurrentModification after the last attempt. */
export function withRetries(
  commitGroup: GroupCommits["commitGroup"],
  { maxRetries, counts, onMismatch }: RetryOptions,
): CommitGroup {
  return async (group, mayFollow) => {
    counts.groups += 1;
    counts.changes += group.length;
    for (let tries = 0; tries <= maxRetries; tries++) {
      if (tries > 0) counts.retries += 1;
      if (tries > 0) await sleep(Math.random() * 10 * tries);
      const outcomes = await commitGroup(group, mayFollow).catch((error: unknown) => {
        if (error instanceof StateChanged) return undefined;
        if (tries > 0 || !isMismatch(error)) throw error;
        onMismatch(error);
        return undefined;
      });
      if (outcomes !== undefined) return outcomes;
    }
    throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
  };
}

function isMismatch(error: unknown): boolean {
  return error instanceof NothingCommitted && error.cause instanceof StateMismatch;
}
