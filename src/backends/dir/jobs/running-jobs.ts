import { LanceError, toLanceError } from "../../../namespace/errors.ts";
import { joinIdentifier } from "../../../namespace/identifier.ts";
import { isThreadEnding } from "../../../runtime/threads/unbroken-work.ts";
import { tracedLater } from "../../../runtime/tracing.ts";
import { untilAborted } from "../concurrency/wait.ts";
import { begunOf, engineOf, type Job, type JobFacts, type JobState, withEvent } from "./job.ts";
import type { JobsOptions, Lessee } from "./options.ts";
import { inTurn, type JobRoom } from "./room.ts";

/** Does the work of a job. It may run a second time after a crash, so it must be repeatable. */
export type JobWork = (job: Job, signal: AbortSignal) => Promise<JobFacts>;

/** The caller of jobs that the gateway submits itself, or takes over. */
export const NOBODY = "";

/** Why a job ends when the server does; the next process runs it. */
export const CLOSING = new LanceError("ServiceUnavailable", "the server is shutting down");
const CANCELLED = new LanceError("Cancelled", "the job was cancelled");
const LOST = new LanceError("ServiceUnavailable", "another process has taken over the job");

/** The jobs that this process runs, or that wait in it for a turn. */
export interface RunningJobs {
  has(id: string): boolean;
  all(): Job[];
  /** Runs a stored job of which this process has the lease. Callers take turns. */
  takeUp(job: Job, caller: string): void;
  /** Runs work that shares the bound on running jobs, and the turns of their callers, without a record. */
  runUnrecorded<T>(signal: AbortSignal, caller: string, work: () => Promise<T>): Promise<T>;
  /** Waits until a job has ended; at once if it does not run here. */
  ended(id: string): Promise<void>;
  /** Stops a job if it runs here. @param reason why it fails. Default: it was cancelled */
  stopJob(id: string, reason?: LanceError): void;
  /** Renews the leases, and stops the jobs that were cancelled or that another process has taken over. */
  renew(): Promise<void>;
  /** Stops all jobs and leaves them to the next process; without waiting for them. */
  stop(): void;
  /** Waits until all jobs have ended. */
  drained(): Promise<void>;
}

interface Active {
  job: Job;
  readonly caller: string;
  readonly controller: AbortController;
  /** Whether the final state of the record is being written; its lease is no longer renewed. */
  isEnding: boolean;
  /** Last write of the record; writes follow each other. */
  writing: Promise<void>;
  finished: Promise<void>;
}

/** Options of {@link createRunningJobs}. */
export interface RunningJobsOptions extends Pick<JobsOptions, "store" | "clock" | "log"> {
  readonly room: JobRoom;
  readonly lessee: Lessee;
  /** The work of each kind of job. */
  readonly kinds: ReadonlyMap<string, JobWork>;
}

/** Does work of a job in a span of the trace of the call that asked for the job. */
function traced<T>(job: Job, work: () => Promise<T>): Promise<T> {
  const attributes = {
    "lance.job_id": job.id,
    "lance.job_type": job.kind,
    "lance.job_engine": engineOf(job),
    "lance.object": joinIdentifier(job.table),
  };
  return tracedLater("job", attributes, job.traceParent, work);
}

/** Creates the jobs that a process runs; none at first. */
export function createRunningJobs(options: RunningJobsOptions): RunningJobs {
  const { store, clock, log, lessee, kinds, room } = options;
  const { owner, lease } = lessee;
  const active = new Map<string, Active>();

  /** Writes a state of the record after the earlier writes. */
  function write(
    entry: Active,
    change: Partial<Job>,
    how: (job: Job) => Promise<void> = store.put,
  ): Promise<void> {
    const writing = entry.writing.then(() => {
      const job = { ...entry.job, ...change };
      const at = change.finishedAt ?? change.startedAt;
      entry.job = at === undefined ? job : withEvent(job, at, owner);
      return how(entry.job);
    });
    entry.writing = writing.catch(() => {});
    return writing;
  }
  async function perform(entry: Active): Promise<void> {
    const { signal } = entry.controller;
    const work = kinds.get(entry.job.kind);
    const { turns, alone } = room.turnsOf(entry.job);
    const begun = begunOf(entry.job);
    let result: JobFacts;
    try {
      // Jobs whose processes died run one at a time, so that only the job at fault fails.
      result = await inTurn(signal, begun > 0 ? alone : turns, entry.caller, async () => {
        const now = await clock.now();
        // The end of the job is recorded already.
        signal.throwIfAborted();
        await write(entry, { state: "running", startedAt: now, begun: begun + 1, lease: lease(now) });
        if (await untilAborted(store.isCancelRequested(entry.job.id), signal))
          entry.controller.abort(CANCELLED);
        // The process that has removed the request to cancel it has ended it.
        else if (work === undefined) entry.controller.abort(LOST);
        signal.throwIfAborted();
        return traced(entry.job, () => (work as JobWork)(entry.job, signal));
      });
    } catch (thrown) {
      await entry.writing;
      // After a pause, the answer of the process that has taken the job over counts. A success is true in any case. A worker that
      // leaves has died for its jobs, one of which may be why.
      if (signal.reason === LOST || isThreadEnding() || !(await isHeld(entry))) return;
      if (signal.reason === CLOSING) return await write(entry, { state: "queued", begun, lease: undefined });
      if (signal.reason === CANCELLED) return await finish(entry, "cancelled", {});
      const error = toLanceError(thrown);
      const { name, code, httpStatus } = error.entry;
      const facts = { job: entry.job.id, kind: entry.job.kind };
      // A mistake of a user is the answer, or in the job's record.
      if (httpStatus < 500) log.info({ ...facts, error: error.message }, "a job was refused");
      else log.warn({ ...facts, err: thrown }, "a job failed");
      return await finish(entry, "failed", { error: { name, code, message: error.message } });
    }
    // A success whose record is not acknowledged may be stored: the job is then found as done, or done once more.
    await finish(entry, "succeeded", { result });
  }
  async function finish(entry: Active, state: JobState, change: Partial<Job>): Promise<void> {
    entry.isEnding = true;
    const finishedAt = await clock.now();
    return write(entry, { ...change, state, finishedAt, lease: undefined }, store.finish);
  }

  /** Whether no other process has taken the job over. */
  async function isHeld({ job }: Active): Promise<boolean> {
    return (await store.get(job.id))?.lease?.owner === owner;
  }
  async function renew(entry: Active): Promise<void> {
    const { job, controller } = entry;
    if (await store.isCancelRequested(job.id)) controller.abort(CANCELLED);
    const renewed = lease(await clock.now());
    const held = await isHeld(entry);
    if (!active.has(job.id) || controller.signal.aborted || entry.isEnding) return;
    if (held) await write(entry, { lease: renewed });
    else controller.abort(LOST);
  }

  return {
    has: (id) => active.has(id),
    all: () => [...active.values()].map(({ job }) => job),
    takeUp(job, caller) {
      const entry: Active = {
        job,
        caller,
        controller: new AbortController(),
        isEnding: false,
        writing: Promise.resolve(),
        finished: Promise.resolve(),
      };
      const leave = room.enter(caller);
      active.set(job.id, entry);
      entry.finished = perform(entry)
        .catch((error) => log.error({ err: error, job: job.id }, "the state of a job cannot be written"))
        .finally(() => {
          active.delete(job.id);
          leave();
        });
    },
    runUnrecorded: (signal, caller, work) => inTurn(signal, room.here.turns, caller, work),
    ended: async (id) => active.get(id)?.finished,
    stopJob: (id, reason = CANCELLED) => active.get(id)?.controller.abort(reason),
    async renew() {
      await Promise.all([...active.values()].map(renew));
    },
    stop() {
      for (const { controller } of active.values()) controller.abort(CLOSING);
    },
    async drained() {
      await Promise.all([...active.values()].map(({ finished }) => finished));
    },
  };
}
