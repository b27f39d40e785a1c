import type { WriteGate } from "../../concurrency/locks.ts";

/** Options of {@link createHeldChanges}. */
export interface HeldChangesOptions {
  /** Longest wait for running changes of a table, in milliseconds. Default: 1,000. */
  readonly drainMs?: number;
  /** Longest wait of later changes, once the running ones have ended, in milliseconds. Default: 2,000. */
  readonly holdMs?: number;
}

/**
 * Has changes of a table wait for a compaction that changes have overtaken, within this process. Each wait ends: with the commit, whether
 * it succeeds or fails, with the job, or with the patience of the changes.
 */
export interface HeldChanges {
  /** Notes that a job begins to commit to a table. After an attempt that was overtaken, returns once no changes run, or patience ends. */
  begin(jobId: string, table: string): Promise<void>;
  /** Notes that a commit has failed: the changes that wait for it go on. */
  overtake(jobId: string): void;
  /** Notes that a job does not commit any more. */
  end(jobId: string): void;
}

/** A job that has begun to commit. */
interface Attempt {
  /** Whether changes wait, or do so once the gate is closed. */
  holds: boolean;
  /** Lets them go on; undefined while the gate closes. */
  open: (() => void) | undefined;
}

/** Creates the waits for compactions, none of which has begun. */
export function createHeldChanges(
  gate: Pick<WriteGate, "close">,
  { drainMs = 1_000, holdMs = 2_000 }: HeldChangesOptions = {},
): HeldChanges {
  const attempts = new Map<string, Attempt>();

  function end(jobId: string): void {
    const attempt = attempts.get(jobId);
    attempts.delete(jobId);
    attempt?.open?.();
  }

  return {
    async begin(jobId, table) {
      const attempt = attempts.get(jobId);
      if (attempt === undefined) attempts.set(jobId, { holds: false, open: undefined });
      // A repeated call, or that of another run, must not close the gate again.
      if (attempt === undefined || attempt.holds) return;
      attempt.holds = true;
      const open = await gate.close(table, drainMs);
      // The job may have ended meanwhile.
      if (attempts.get(jobId) !== attempt) return open();
      const timer = setTimeout(() => end(jobId), holdMs);
      attempt.open = () => {
        clearTimeout(timer);
        open();
      };
    },
    overtake(jobId) {
      if (attempts.get(jobId)?.holds === true) end(jobId);
    },
    end,
  };
}
