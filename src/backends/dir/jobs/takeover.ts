import { createSilence } from "../ownership/renewal.ts";
import { begunOf, type Job, withEvent } from "./job.ts";
import type { JobsOptions, Lessee } from "./options.ts";
import type { RunningJobs } from "./running-jobs.ts";

/** After this number of starts by processes that died, a job is not started again: it may have ended them. */
const MAX_BEGUN = 2;

/** Number of claims that are tried to take a job over. */
const MAX_CLAIMS = 10;

/** Options of {@link createTakeover}. */
export interface TakeoverOptions extends Pick<JobsOptions, "store" | "clock"> {
  readonly lessee: Lessee;
  /** Duration of a lease, in milliseconds. */
  readonly leaseMs: number;
  /** Pause since the last start of a job whose process has died, in milliseconds. */
  readonly retryMs: number;
  readonly running: RunningJobs;
  /** Whether this process can run a job, or end it. */
  readonly mayTake: (job: Job) => Promise<boolean>;
  /** Returns the jobs that have not ended. */
  readonly open: () => Promise<readonly Job[]>;
  /** Whether there is room for a job that runs for a caller. */
  readonly hasRoom: (caller: string) => boolean;
  /** Whether the process ends, so that it takes nothing over. */
  readonly isClosing: () => boolean;
}

/**
 * Looks for jobs that no process runs, because theirs has died, and takes over those whose time has come.
 *
 * @param caller for whom they run in this process
 * @param isMeant whether a job may be taken over
 */
export type Takeover = (caller: string, isMeant: (job: Job) => boolean | Promise<boolean>) => Promise<void>;

/** Creates the look for jobs that no process runs; looks must not overlap. */
export function createTakeover(options: TakeoverOptions): Takeover {
  const { store, clock, lessee, leaseMs, retryMs, running, mayTake, open, hasRoom, isClosing } = options;
  const silence = createSilence(clock);

  const sweep: Takeover = async (caller, isMeant) => {
    for (const job of await open()) {
      if (isClosing() || !hasRoom(caller)) return;
      if (
        running.has(job.id) ||
        !(await isFree(job)) ||
        (await rests(job)) ||
        !(await isMeant(job)) ||
        !(await mayTake(job))
      )
        continue;
      const attempts = await claim(job);
      if (attempts === undefined) continue;
      // The job may have been finished, including its claims, since it was listed.
      const current = await store.get(job.id);
      if (current?.attempts !== job.attempts || current.finishedAt !== undefined) continue;
      const taken: Job = {
        ...job,
        attempts,
        lease: isClosing() ? undefined : lessee.lease(await clock.now()),
      };
      if (begunOf(job) >= MAX_BEGUN) {
        await giveUp(taken);
        continue;
      }
      await store.put(taken);
      if (!isClosing()) running.takeUp(taken, caller);
    }
  };
  /** Whether no process renews the lease of a job. */
  async function isFree({ id, lease: held }: Job): Promise<boolean> {
    return held === undefined || silence.isLonger(id, held.until - leaseMs, leaseMs);
  }
  /** Whether a job whose process died must wait before it starts again. */
  async function rests(job: Job): Promise<boolean> {
    const begun = begunOf(job);
    if (begun === 0 || begun >= MAX_BEGUN) return false;
    return !(await silence.isLonger(`${job.id} start`, job.startedAt ?? 0, retryMs));
  }
  /** Returns the number of this process's attempt; undefined if another process is about to start one. */
  async function claim(job: Job): Promise<number | undefined> {
    const first = job.attempts + 1;
    for (let attempt = first; attempt <= first + MAX_CLAIMS; attempt++) {
      if (await store.claim(job, attempt)) return attempt;
      const claimedAt = await store.claimedAt(job, attempt);
      // A process that died right after its claim has left the record unchanged. A missing claim belongs to a job
      // that ended.
      if (claimedAt === undefined) return undefined;
      if (!(await silence.isLonger(`${job.id}.${attempt}`, claimedAt, leaseMs))) return undefined;
    }
    return undefined;
  }
  async function giveUp(job: Job): Promise<void> {
    const message = `the job was begun ${MAX_BEGUN} times and never ended`;
    const error = { name: "Internal", code: 18, message };
    const finishedAt = await clock.now();
    const failed: Job = { ...job, state: "failed", finishedAt, lease: undefined, error };
    return store.finish(withEvent(failed, finishedAt, lessee.owner));
  }

  return sweep;
}
