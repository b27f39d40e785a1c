import { hash } from "node:crypto";
import type { Logger } from "pino";
import type { Call } from "../../../namespace/call/call.ts";
import { callerKey } from "../../../namespace/call/caller-key.ts";
import { type Identifier, sameIdentifier } from "../../../namespace/identifier.ts";
import { putNewest } from "../../../runtime/collections.ts";
import type { FoundTable } from "../../dir/data/table-source.ts";
import { keyIn, type ObjectStore } from "../../dir/format/storage.ts";
import { createStorageClock, MACHINE_CLOCK } from "../../dir/format/storage-clock.ts";
import { TABLE_BASE } from "../../dir/format/table-files.ts";
import type { Job } from "../../dir/jobs/job.ts";
import { createJobs, type StoredJobs } from "../../dir/jobs/jobs.ts";
import { inTurn, type JobRoom } from "../../dir/jobs/room.ts";
import type { JobWork } from "../../dir/jobs/running-jobs.ts";
import { createJobStore, JOBS_DIRECTORY, type JobStore, type RecordLimits } from "../../dir/jobs/store.ts";
import type { RowJobContext } from "../../dir/operations/context.ts";
import { gone, type KeptTable, watchKept } from "../kept-table.ts";
import { beginningOf, isSince, jobIdOf, parseJobId } from "./job-tables.ts";

/** A call on a table, whose caller's rights its jobs use. */
export interface JobCall {
  readonly call: Call;
  readonly table: FoundTable;
  /** Keeps the table in use for a job, as the caller of the call. The call, or another use of the table, must not have ended. */
  keep(): KeptTable;
}

/** The jobs of a table. */
export type TableJobs = Pick<StoredJobs, "get" | "list" | "cancel">;

/** Jobs on the tables of a storage. Their records are in the directories of the tables, which is all that credentials may open. */
export interface StorageJobs {
  /** The jobs, as the operations on data start and find them; their ids name the table. */
  readonly ofRows: RowJobContext["jobs"];
  /** Returns the jobs of a table. */
  of(table: FoundTable): TableJobs;
  /** Whether a process works on a job on a table. */
  isAtWork(table: FoundTable): Promise<boolean>;
  /** Makes a call one on which jobs may start, or go on. @returns ends that */
  bind(by: JobCall): () => void;
  /** Has the jobs of a caller go on whose processes have died. */
  goOn(by: JobCall): Promise<void>;
  /** Stops the jobs that run, and leaves them to the next call of their callers. */
  close(): Promise<void>;
}

/** Options of {@link createStorageJobs}. */
export interface StorageJobsOptions {
  readonly store: ObjectStore;
  /** Room that the jobs of all storages share. */
  readonly room: JobRoom;
  readonly log: Logger;
  /** Called with a table that has jobs. */
  readonly onJobs: (id: Identifier) => void;
  /** Duration of a lease, and pause before a second start, in milliseconds. Default: those of the jobs of a directory. */
  readonly times?: { readonly leaseMs?: number; readonly retryMs?: number } | undefined;
}

/** The records of the jobs of a table. */
interface Records {
  readonly jobs: StoredJobs;
  /** Returns the storage's time. */
  readonly now: () => Promise<number>;
  /** Whether leases are renewed. */
  isStarted: boolean;
  /** Number of jobs that run here, and of calls that may start some. */
  uses: number;
}

/** Maximum number of tables whose records are kept open without a job that runs. */
const MAX_OPEN = 1_000;

/** Maximum number of jobs whose records are found by their ids alone; twice as many as run and wait. */
const MAX_KNOWN = 2_000;

/** How much is read of the records of a table, which every writer of its directory can make. */
const LIMITS: RecordLimits = { records: 10_000, recordBytes: 2 ** 20, bytes: 2 ** 24 };

/** Longest wait for the end of a job, in milliseconds. */
const LONGEST_WAIT_MS = 0x7fff_ffff;

/** Creates the jobs on the tables of a storage. */
export function createStorageJobs({ store, room, log, onJobs, times }: StorageJobsOptions): StorageJobs {
  const kinds = new Map<string, JobWork>();
  /** The records of tables, by their locations. The least recently used one is the first. */
  const open = new Map<string, Records>();
  const bound = new Map<string, Set<JobCall>>();
  const chores = new Set<Promise<unknown>>();
  /** The jobs that run here, and are looked after. */
  const attended = new Set<string>();
  /** The records of the jobs that ran here last. */
  const recordsOf = new Map<string, Records>();
  /** The jobs, by their records, whose callers had the table no more, so that nothing is written to its directory. */
  const goneJobs = new Map<string, true>();

  function recordsAt(location: string): Records {
    const records = open.get(location) ?? createRecords(location);
    open.delete(location);
    open.set(location, records);
    if (open.size > MAX_OPEN) {
      const [oldest] = [...open].find(([, { uses }]) => uses === 0) ?? [];
      if (oldest !== undefined) open.delete(oldest);
    }
    return records;
  }
  function createRecords(location: string): Records {
    const base = keyIn(location, TABLE_BASE);
    const clock = createStorageClock(store, base);
    // The clock of the storage writes there, too.
    const isGone = () => jobs.active().length > 0 && jobs.active().every(({ id }) => goneJobs.has(id));
    const now = () => (isGone() ? MACHINE_CLOCK : clock).now();
    const ownStore = createJobStore(store, keyIn(base, JOBS_DIRECTORY), LIMITS);
    const stored = unlessGone(ownStore, ({ id }) => goneJobs.has(id));
    const jobs = createJobs({ ...times, store: stored, clock: { now }, room, log });
    const records: Records = { jobs, now, isStarted: false, uses: 0 };
    for (const [kind, work] of kinds) jobs.define(kind, work);
    return records;
  }
  /** Takes the records of a table, whose leases are renewed until the last use ends. */
  function take(location: string): { readonly records: Records; end(): void } {
    const records = recordsAt(location);
    records.uses += 1;
    return {
      records,
      end() {
        records.uses -= 1;
        if (records.uses > 0 || !records.isStarted) return;
        // A table without running jobs has no timers.
        if (open.get(location) === records) open.delete(location);
        chore(records.jobs.close());
      },
    };
  }
  function chore(work: Promise<unknown>): void {
    const done = work
      .catch((error) => log.warn({ err: error }, "the jobs of a table cannot be looked after"))
      .finally(() => chores.delete(done));
    chores.add(done);
  }

  /** Looks after a job that runs here, with the rights of the caller who has started it. */
  function attend(job: Job, kept: KeptTable): void {
    const { id } = job;
    const { records, end } = take(kept.table.location);
    const { jobs } = records;
    if (!records.isStarted) {
      records.isStarted = true;
      jobs.start(false);
      chore(jobs.prune());
    }
    attended.add(id);
    putNewest(recordsOf, id, records, MAX_KNOWN);
    onJobs(kept.table.id);
    const isThere = async () =>
      (await kept.isThere()) && isSince(await beginningOf(store, kept.table.location), job);
    const endWatch = watchKept({ ...kept, isThere }, (reason, isGone) => {
      if (isGone) putNewest(goneJobs, id, true, MAX_KNOWN);
      jobs.fail(id, reason);
    });
    const leave = () => {
      endWatch();
      kept.release();
      attended.delete(id);
      end();
    };
    chore(jobs.ended(id, LONGEST_WAIT_MS).then(leave, leave));
  }
  async function goOn({ call, table, keep }: JobCall): Promise<void> {
    const { records, end } = take(table.location);
    const { jobs } = records;
    const kept = keep();
    const own = new Set<string>();
    const isMeant = async (job: Job) => {
      if (!isOn(job, table)) return false;
      // A job that was cancelled only has to end, and its caller may never come again.
      const isOwn = isBy(job, call) && isSince(await beginningOf(store, table.location), job);
      if (isOwn || (await jobs.isCancelRequested(job.id))) own.add(job.id);
      return own.has(job.id);
    };
    try {
      await jobs.takeOver(callerKey(call), isMeant);
      for (const job of jobs.active()) if (own.has(job.id) && !attended.has(job.id)) attend(job, keep());
    } finally {
      kept.release();
      end();
    }
  }

  const ofRows: StorageJobs["ofRows"] = {
    define: (kind, work) => void kinds.set(kind, work),
    runUnrecorded: (signal, caller, work) => inTurn(signal, room.here.turns, caller, work),
    async submit(request, caller, call) {
      const by = [...(bound.get(String(request.spec["location"])) ?? [])].find((each) => each.call === call);
      if (by === undefined) throw new Error("a job is started by a call on its table");
      const { records, end } = take(by.table.location);
      const kept = by.keep();
      try {
        const job = await records.jobs.submit({ ...request, startedBy: digestOf(by.call) }, caller);
        attend(job, kept);
        return { ...job, id: jobIdOf({ record: job.id, table: job.table }) };
      } catch (error) {
        kept.release();
        throw error;
      } finally {
        end();
      }
    },
    async ended(id, milliseconds) {
      const { record = "", table = [] } = parseJobId(id) ?? {};
      const records = recordsOf.get(record);
      const job = await records?.jobs.ended(record, milliseconds);
      if (goneJobs.has(record)) throw gone({ id: table });
      return job;
    },
    async cancel(id) {
      const { record = "" } = parseJobId(id) ?? {};
      return (await recordsOf.get(record)?.jobs.cancel(record)) ?? false;
    },
    async open(location = "") {
      const all = await recordsAt(location).jobs.open(location);
      const beginning = all.length === 0 ? 0 : await beginningOf(store, location);
      const found = all.filter((job) => isSince(beginning, job));
      for (const by of bound.get(location) ?? [])
        if (found.some((job) => isOn(job, by.table) && isBy(job, by.call))) {
          chore(goOn(by));
          break;
        }
      return found;
    },
    cancelAt: (location, isMeant) => recordsAt(location).jobs.cancelAt(location, isMeant),
  };
  return {
    ofRows,
    of(table) {
      const { jobs } = recordsAt(table.location);
      const idOf = (record: string) => jobIdOf({ record, table: table.id });
      return {
        async get(id) {
          const job = await jobs.get(parseJobId(id)?.record ?? "");
          // Another program may have put the record there.
          return job && { ...job, id: idOf(job.id), table: table.id };
        },
        async list() {
          const found = await jobs.list();
          if (found.length > 0) onJobs(table.id);
          return found.map((job) => ({ ...job, id: idOf(job.id), table: table.id }));
        },
        cancel: (id) => jobs.cancel(parseJobId(id)?.record ?? ""),
      };
    },
    async isAtWork({ location }) {
      const { jobs, now } = recordsAt(location);
      const all = await jobs.open(location);
      if (!all.some(({ lease }) => lease !== undefined)) return false;
      const at = await now();
      return all.some(({ lease }) => lease !== undefined && lease.until > at);
    },
    bind(by) {
      const { location } = by.table;
      const calls = bound.get(location) ?? new Set();
      bound.set(location, calls.add(by));
      return () => {
        calls.delete(by);
        if (calls.size === 0) bound.delete(location);
      };
    },
    goOn,
    async close() {
      await Promise.all([...open.values()].map(({ jobs }) => jobs.close()));
      await Promise.all(chores);
    },
  };
}

/** Whether a record is that of a job on a table. A writer of the table's directory may have put it there. */
function isOn({ table, spec }: Job, found: FoundTable): boolean {
  return spec["location"] === found.location && sameIdentifier(table, found.id);
}

/** Whether a record names a caller as the one who has started the job. */
function isBy({ startedBy }: Job, call: Call): boolean {
  return startedBy === digestOf(call);
}

/** Returns a text that is equal for all calls of a caller, and does not show who it is. */
function digestOf(call: Call): string {
  return hash("sha256", callerKey(call), "base64url");
}

/** Returns a store that writes nothing once a table is gone: another one may be made in its place. */
function unlessGone(store: JobStore, isGone: (job: Job) => boolean): JobStore {
  return {
    ...store,
    put: async (job) => (isGone(job) ? undefined : store.put(job)),
    finish: async (job) => (isGone(job) ? undefined : store.finish(job)),
  };
}
