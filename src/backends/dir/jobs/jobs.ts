import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { currentTraceParent } from "../../../runtime/tracing.ts";
import { type Job, type JobFacts, type JobRequest, type JobSummary, withEvent } from "./job.ts";
import type { JobsOptions } from "./options.ts";
import { createLessee } from "./options.ts";
import { createJobRoom } from "./room.ts";
import { CLOSING, createRunningJobs, type JobWork, NOBODY } from "./running-jobs.ts";
import type { JobStore, OnDamagedJob } from "./store.ts";
import { createTakeover, type Takeover } from "./takeover.ts";

/** Long work with ids that survive a restart. */
export interface Jobs {
  /**
   * Defines how jobs of a kind run in this process; call it before {@link Jobs.start}. Jobs of other kinds are left to other
   * processes of the catalog, except for those that were cancelled.
   */
  define(kind: string, work: JobWork): void;
  /**
   * Begins to renew the leases of the jobs that this process runs.
   *
   * @param takesOver whether it takes over the jobs that earlier processes left, and keeps looking for those of processes that die. Default:
   *   true
   */
  start(takesOver?: boolean): void;
  /**
   * Stores a job, which runs in the background. Callers take turns.
   *
   * @param caller Default: the gateway itself
   * @param call the call that asks, whose rights the job uses where the gateway has none of its own. Default: none asks
   * @throws LanceError InvalidInput if its parameters are too long; Throttling if too many jobs wait, or of the caller's more than the others leave free
   */
  submit(request: JobRequest, caller?: string, call?: Call): Promise<Job>;
  /**
   * Stores a job for another process of the catalog.
   *
   * @throws LanceError InvalidInput if its parameters are too long
   */
  leave(request: JobRequest): Promise<Job>;
  /** Runs work that shares the bound on running jobs, and the turns of their callers, without a record. */
  runUnrecorded<T>(signal: AbortSignal, caller: string, work: () => Promise<T>): Promise<T>;
  get(id: string): Promise<Job | undefined>;
  /** Waits for a job that this process runs, and returns it; undefined if it has not ended in that time. */
  ended(id: string, milliseconds: number): Promise<Job | undefined>;
  /** Returns the recorded jobs, the oldest first; the log names those whose records are damaged. */
  list(): Promise<readonly JobSummary[]>;
  /**
   * Returns the jobs that have not ended, the oldest first.
   *
   * @param location that of a table. Default: the jobs of all tables
   */
  open(location?: string): Promise<Job[]>;
  /** Returns the jobs that this process runs. */
  active(): Job[];
  /** Asks a job to stop; returns false if it has ended or does not exist. */
  cancel(id: string): Promise<boolean>;
  /** Whether a job that has not ended was asked to stop, by any process. */
  isCancelRequested(id: string): Promise<boolean>;
  /**
   * Asks the jobs to stop that work at a location, and waits for none of them.
   *
   * @param isMeant whether a job of the location has to stop. Default: each has
   */
  cancelAt(location: string, isMeant?: (spec: JobFacts) => boolean): Promise<void>;
  /** Stops the running jobs and leaves them to the next process. */
  close(): Promise<void>;
}

/** The jobs of a store, as the process sees them that opens the store. */
export interface StoredJobs extends Jobs {
  /** Stops a job that this process runs, which fails for a reason. */
  fail(id: string, reason: LanceError): void;
  /**
   * Looks once for jobs whose processes have died, and takes them over, as many as it has room for.
   *
   * @param caller for whom they run here. Default: the gateway itself
   * @param isMeant whether a job may be taken over. Default: each may
   */
  takeOver(caller?: string, isMeant?: (job: Job) => boolean | Promise<boolean>): Promise<void>;
  /** Removes the finished jobs that are not kept any longer. */
  prune(): Promise<void>;
}

/** Maximum number of finished jobs that are kept: a view that refreshes itself makes thousands a day. */
const MAX_FINISHED = 10_000;

/** Number of jobs that a process finishes until it removes old ones, which it also does each hour. */
const PRUNE_AFTER = 1_000;

/** Maximum length of the parameters of a job, in characters: a thousand that wait are in memory, and are read again and again. */
const MAX_SPEC_LENGTH = 64 * 1024;

/** Longest time of a timer of Node, in milliseconds. */
const LONGEST_WAIT_MS = 0x7fff_ffff;

const CANNOT_PRUNE = "old jobs cannot be removed";

/** Creates the jobs of a store. */
export function createJobs(options: JobsOptions): StoredJobs {
  const { clock, log, leaseMs = 30_000, retryMs = 60_000 } = options;
  const { keepMs = 7 * 24 * 60 * 60 * 1000, maxWaiting = 1_000 } = options;
  let finished = 0;
  const store: JobStore = {
    ...options.store,
    async finish(job) {
      await options.store.finish(job);
      finished += 1;
      if (finished % PRUNE_AFTER === 0) chore(CANNOT_PRUNE, prune);
    },
  };
  const lessee = createLessee(leaseMs);
  const kinds = new Map<string, JobWork>();
  const { room = createJobRoom(options.maxRunning) } = options;
  const running = createRunningJobs({ ...options, store, lessee, kinds, room });
  const timers: NodeJS.Timeout[] = [];
  const chores = new Set<Promise<unknown>>();
  /** The ids of the jobs whose damaged records the log has named. */
  const damaged = new Set<string>();
  let closing = false;
  let sweeping = Promise.resolve();

  const noteDamaged: OnDamagedJob = (id, error) => {
    if (!damaged.has(id))
      log.error(
        { err: error, job: id },
        "a job is not listed and does not run, because its record is damaged",
      );
    damaged.add(id);
  };
  const listOpen = () => store.listOpen(noteDamaged);

  const sweep = createTakeover({
    ...{ store, clock, lessee, leaseMs, retryMs, running },
    // Without its work, a job that was cancelled can only be ended.
    mayTake: async ({ id, kind }) => kinds.has(kind) || store.isCancelRequested(id),
    open: listOpen,
    hasRoom: (caller) => caller === NOBODY || hasRoom(caller),
    isClosing: () => closing,
  });

  function chore(failure: string, task: () => Promise<unknown>): void {
    const done = task()
      .catch((error) => log.warn({ err: error }, failure))
      .finally(() => chores.delete(done));
    chores.add(done);
  }
  function every(milliseconds: number, failure: string, task: () => Promise<unknown>): void {
    timers.push(setInterval(() => chore(failure, task), milliseconds).unref());
  }
  const prune = async () => store.prune((await clock.now()) - keepMs, MAX_FINISHED);

  // A later caller finds room, too.
  const hasRoom = (caller: string) => room.countOf(caller) < maxWaiting - room.size;

  function takeOver(caller = NOBODY, isMeant: Parameters<Takeover>[1] = () => true): Promise<void> {
    sweeping = sweeping
      .then(() => sweep(caller, isMeant))
      .catch((error) => log.warn({ err: error }, "the jobs of the catalog cannot be read"));
    return sweeping;
  }
  async function openJobs(location?: string): Promise<Job[]> {
    const found = await listOpen();
    return location === undefined ? found : found.filter(({ spec }) => spec["location"] === location);
  }

  async function record(
    { kind, table, spec, startedBy }: JobRequest,
    leaseAt: (now: number) => Job["lease"],
  ): Promise<Job> {
    checkSpec(spec);
    const createdAt = await clock.now();
    const traceParent = currentTraceParent();
    const of = {
      ...(startedBy !== undefined && { startedBy }),
      ...(traceParent !== undefined && { traceParent }),
    };
    const facts = { kind, table, spec, ...of, state: "queued", createdAt, attempts: 1 } as const;
    const job = withEvent({ id: randomUUID(), ...facts, lease: leaseAt(createdAt) }, createdAt, lessee.owner);
    await store.put(job);
    return job;
  }

  async function cancel(id: string): Promise<void> {
    await store.requestCancel(id);
    running.stopJob(id);
  }

  return {
    define: (kind, work) => void kinds.set(kind, work),
    start(takesOver = true) {
      if (takesOver) {
        void takeOver();
        every(leaseMs / 2, "the jobs of the catalog cannot be read", takeOver);
      }
      every(leaseMs / 3, "the lease of a job cannot be renewed", () => running.renew());
      every(60 * 60 * 1000, CANNOT_PRUNE, prune);
    },
    async submit(request, caller = NOBODY) {
      if (!kinds.has(request.kind))
        throw new Error(`job kind ${request.kind} is not defined in this process`);
      if (closing) throw CLOSING;
      if (!hasRoom(caller)) throw tooMany();
      const job = await record(request, (now) => lessee.lease(now));
      if (closing) await store.put({ ...job, lease: undefined });
      else running.takeUp(job, caller);
      return job;
    },
    leave: (request) => record(request, () => undefined),
    runUnrecorded: running.runUnrecorded,
    get: store.get,
    async ended(id, milliseconds) {
      const late = new AbortController();
      const time = setTimeout(milliseconds, undefined, { signal: late.signal, ref: false }).catch(() => {});
      await Promise.race([running.ended(id), time]);
      late.abort();
      const job = await store.get(id);
      return job?.finishedAt === undefined ? undefined : job;
    },
    list: () => store.list(noteDamaged),
    open: openJobs,
    active: running.all,
    async cancel(id) {
      const job = await store.get(id);
      if (job === undefined || job.finishedAt !== undefined) return false;
      await cancel(id);
      return true;
    },
    isCancelRequested: store.isCancelRequested,
    async cancelAt(location, isMeant = () => true) {
      for (const { id, spec } of await openJobs(location)) if (isMeant(spec)) await cancel(id);
    },
    fail: running.stopJob,
    takeOver,
    prune,
    async close() {
      closing = true;
      for (const timer of timers) clearInterval(timer);
      running.stop();
      await Promise.all([sweeping, ...chores]);
      await running.drained();
    },
  };
}

/** Waits until a job of this process has ended. @throws LanceError ServiceUnavailable if another process continues it */
export async function untilEnded(jobs: Pick<Jobs, "ended">, id: string): Promise<Job> {
  const job = await jobs.ended(id, LONGEST_WAIT_MS);
  if (job !== undefined) return job;
  throw new LanceError(
    "ServiceUnavailable",
    `this process has left the job ${id}, which another one continues`,
  );
}

function checkSpec(spec: JobFacts): void {
  const { length } = JSON.stringify(spec);
  if (length <= MAX_SPEC_LENGTH) return;
  const message = `the job would have ${length} characters of parameters, and may have ${MAX_SPEC_LENGTH}`;
  throw new LanceError("InvalidInput", message);
}

function tooMany(): LanceError {
  const headers = { "retry-after": "10" };
  return new LanceError("Throttling", "too many jobs are queued; try again later", { headers });
}
