import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { LanceError, toLanceError } from "../../../namespace/errors.ts";
import { createTurns, type Turns } from "../concurrency/turns.ts";
import { untilAborted } from "../concurrency/wait.ts";
import { createSilence } from "../format/silence.ts";
import {
  type Job,
  type JobFacts,
  type JobRequest,
  type JobState,
  type JobSummary,
  withEvent,
} from "./job.ts";
import type { JobsOptions } from "./options.ts";

/** Does the work of a job. It may run a second time after a crash, so it must be repeatable. */
export type JobWork = (job: Job, signal: AbortSignal) => Promise<JobFacts>;

/** Default number of jobs that run concurrently in a process. */
export const MAX_RUNNING_JOBS = 2;

/** Long work with ids that survive a restart. */
export interface Jobs {
  /** Defines how jobs of a kind run; call it before {@link Jobs.start}. */
  define(kind: string, work: JobWork): void;
  /** Takes over the jobs that earlier processes left, and keeps looking for those of processes that die. */
  start(): void;
  /**
   * Stores a job, which runs in the background. Callers take turns.
   *
   * @param caller Default: the gateway itself
   * @throws LanceError Throttling if too many jobs wait, or of the caller's more than the others leave free
   */
  submit(request: JobRequest, caller?: string): Promise<Job>;
  /** Runs work that shares the bound on running jobs, and the turns of their callers, without a record. */
  runUnrecorded<T>(signal: AbortSignal, caller: string, work: () => Promise<T>): Promise<T>;
  get(id: string): Promise<Job | undefined>;
  /** Waits for a job that this process runs, and returns it; undefined if it has not ended in that time. */
  ended(id: string, milliseconds: number): Promise<Job | undefined>;
  /** Returns all recorded jobs, the oldest first. */
  list(): Promise<readonly JobSummary[]>;
  /** Returns the jobs that have not ended, the oldest first. */
  open(): Promise<Job[]>;
  /** Returns the jobs that this process runs. */
  active(): Job[];
  /** Asks a job to stop; returns false if it has ended or does not exist. */
  cancel(id: string): Promise<boolean>;
  /** Asks the jobs to stop that work at a location, and waits for none of them. */
  cancelAt(location: string): Promise<void>;
  /** Stops the running jobs and leaves them to the next process. */
  close(): Promise<void>;
}

/** After this number of starts by processes that died, a job is not started again: it may have ended them. */
const MAX_BEGUN = 2;

/** Maximum number of finished jobs that are kept: a view that refreshes itself makes thousands a day. */
const MAX_FINISHED = 10_000;

/** The caller of jobs that the gateway submits itself, or takes over. */
const NOBODY = "";

/** Number of claims that are tried to take a job over. */
const MAX_CLAIMS = 10;

const CANCELLED = new LanceError("Cancelled", "the job was cancelled");
const CLOSING = new LanceError("ServiceUnavailable", "the server is shutting down");
const LOST = new LanceError("ServiceUnavailable", "another process has taken the job over");

interface Active {
  job: Job;
  /** The caller that submitted the job to this process. */
  readonly caller: string;
  readonly controller: AbortController;
  /** Whether the final state of the record is being written; its lease is no longer renewed. */
  isEnding: boolean;
  /** Last write of the record; writes follow each other. */
  writing: Promise<void>;
  finished: Promise<void>;
}

function begunOf({ begun, state }: Job): number {
  return begun ?? (state === "running" ? 1 : 0);
}

/** Creates the jobs of a catalog. */
export function createJobs(options: JobsOptions): Jobs {
  const { store, clock, log, maxRunning = MAX_RUNNING_JOBS, leaseMs = 30_000, retryMs = 60_000 } = options;
  const { keepMs = 7 * 24 * 60 * 60 * 1000, maxWaiting = 1_000 } = options;
  const owner = randomUUID();
  const silence = createSilence(clock);
  const [turns, alone] = [createTurns(maxRunning), createTurns(1)];
  const kinds = new Map<string, JobWork>();
  const active = new Map<string, Active>();
  const timers: NodeJS.Timeout[] = [];
  const chores = new Set<Promise<unknown>>();
  /** The ids of the jobs whose damaged records the log has named. */
  const damaged = new Set<string>();
  let closing = false;
  let sweeping = Promise.resolve();

  const lease = (now: number) => ({ owner, until: now + leaseMs });

  const listOpen = () =>
    store.listOpen((id, error) => {
      if (!damaged.has(id))
        log.error({ err: error, job: id }, "a job cannot run, because its record is damaged");
      damaged.add(id);
    });

  /** Waits for a turn, but not beyond the signal; it waits for started work to end. */
  async function inTurn<T>(
    signal: AbortSignal,
    among: Turns,
    caller: string,
    work: () => Promise<T>,
  ): Promise<T> {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const ended = among.run(
      () => {
        begin();
        return work();
      },
      () => !signal.aborted,
      caller,
    );
    ended.catch(() => {});
    await untilAborted(begun, signal);
    return (await ended) as T;
  }

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
  function takeUp(job: Job, caller = NOBODY): Active {
    const controller = new AbortController();
    const entry: Active = {
      job,
      caller,
      controller,
      isEnding: false,
      writing: Promise.resolve(),
      finished: Promise.resolve(),
    };
    active.set(job.id, entry);
    entry.finished = perform(entry)
      .catch((error) => log.error({ err: error, job: job.id }, "the state of a job cannot be written"))
      .finally(() => active.delete(job.id));
    return entry;
  }
  async function perform(entry: Active): Promise<void> {
    const { signal } = entry.controller;
    const work = kinds.get(entry.job.kind) as JobWork;
    const begun = begunOf(entry.job);
    let result: JobFacts;
    try {
      // Jobs whose processes died run one at a time, so that only the job at fault fails.
      result = await inTurn(signal, begun > 0 ? alone : turns, entry.caller, async () => {
        const now = await clock.now();
        await write(entry, { state: "running", startedAt: now, begun: begun + 1, lease: lease(now) });
        if (await untilAborted(store.isCancelRequested(entry.job.id), signal))
          entry.controller.abort(CANCELLED);
        signal.throwIfAborted();
        return work(entry.job, signal);
      });
    } catch (thrown) {
      await entry.writing;
      // After a pause, the answer of the process that has taken the job over counts. A success is true in any case.
      if (signal.reason === LOST || !(await isHeld(entry))) return;
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
  async function sweep(): Promise<void> {
    for (const job of await listOpen()) {
      if (closing) return;
      if (active.has(job.id) || !kinds.has(job.kind) || !(await isFree(job)) || (await rests(job))) continue;
      const attempts = await claim(job);
      if (attempts === undefined) continue;
      // The job may have been finished, including its claims, since it was listed.
      const current = await store.get(job.id);
      if (current?.attempts !== job.attempts || current.finishedAt !== undefined) continue;
      const taken: Job = { ...job, attempts, lease: closing ? undefined : lease(await clock.now()) };
      if (begunOf(job) >= MAX_BEGUN) {
        await giveUp(taken);
        continue;
      }
      await store.put(taken);
      if (!closing) takeUp(taken);
    }
  }
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
    return store.finish(withEvent(failed, finishedAt, owner));
  }
  function every(milliseconds: number, what: string, task: () => Promise<unknown>): void {
    const timer = setInterval(() => {
      const chore = task()
        .catch((error) => log.warn({ err: error }, what))
        .finally(() => chores.delete(chore));
      chores.add(chore);
    }, milliseconds);
    timers.push(timer.unref());
  }

  async function cancel(id: string): Promise<void> {
    await store.requestCancel(id);
    active.get(id)?.controller.abort(CANCELLED);
  }

  return {
    define(kind, work) {
      kinds.set(kind, work);
    },
    start() {
      const sweepNext = () => {
        sweeping = sweeping
          .then(sweep)
          .catch((error) => log.warn({ err: error }, "the jobs of the catalog cannot be read"));
        return sweeping;
      };
      void sweepNext();
      every(leaseMs / 2, "the jobs of the catalog cannot be read", sweepNext);
      every(leaseMs / 3, "the lease of a job cannot be renewed", () =>
        Promise.all([...active.values()].map(renew)),
      );
      every(60 * 60 * 1000, "old jobs cannot be removed", async () =>
        store.prune((await clock.now()) - keepMs, MAX_FINISHED),
      );
    },
    async submit({ kind, table, spec }, caller = NOBODY) {
      if (!kinds.has(kind)) throw new Error(`there is no work of the kind ${kind}`);
      if (closing) throw CLOSING;
      const own = [...active.values()].filter((entry) => entry.caller === caller).length;
      // A later caller finds room, too.
      if (own >= maxWaiting - active.size) throw tooMany();
      const id = randomUUID();
      const state = "queued";
      const createdAt = await clock.now();
      const facts: Job = { id, kind, table, spec, state, createdAt, attempts: 1, lease: lease(createdAt) };
      const job = withEvent(facts, createdAt, owner);
      await store.put(job);
      if (closing) await store.put({ ...job, lease: undefined });
      else takeUp(job, caller);
      return job;
    },
    runUnrecorded: (signal, caller, work) => inTurn(signal, turns, caller, work),
    get: store.get,
    async ended(id, milliseconds) {
      const late = new AbortController();
      const time = setTimeout(milliseconds, undefined, { signal: late.signal, ref: false }).catch(() => {});
      await Promise.race([active.get(id)?.finished, time]);
      late.abort();
      const job = await store.get(id);
      return job?.finishedAt === undefined ? undefined : job;
    },
    list: store.list,
    open: listOpen,
    active: () => [...active.values()].map(({ job }) => job),
    async cancel(id) {
      const job = await store.get(id);
      if (job === undefined || job.finishedAt !== undefined) return false;
      await cancel(id);
      return true;
    },
    async cancelAt(location) {
      for (const { id, spec } of await listOpen()) if (spec["location"] === location) await cancel(id);
    },
    async close() {
      closing = true;
      for (const timer of timers) clearInterval(timer);
      for (const { controller } of active.values()) controller.abort(CLOSING);
      await Promise.all([sweeping, ...chores]);
      await Promise.all([...active.values()].map(({ finished }) => finished));
    },
  };
}

function tooMany(): LanceError {
  const headers = { "retry-after": "10" };
  return new LanceError("Throttling", "too many jobs wait for their turn; try again later", { headers });
}
