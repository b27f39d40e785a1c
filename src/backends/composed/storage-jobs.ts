import { hash } from "node:crypto";
import type { Logger } from "pino";
import type { Call } from "../../namespace/call/call.ts";
import { callerKey } from "../../namespace/call/caller-key.ts";
import { type Identifier, sameIdentifier } from "../../namespace/identifier.ts";
import { putNewest } from "../../runtime/put-newest.ts";
import type { FoundTable } from "../dir/data/table-source.ts";
import { keyIn, type ObjectStore } from "../dir/format/storage.ts";
import { createStorageClock, MACHINE_CLOCK } from "../dir/format/storage-clock.ts";
import { TABLE_BASE } from "../dir/format/table-files.ts";
import type { Job } from "../dir/jobs/job.ts";
import { createJobs, type StoredJobs } from "../dir/jobs/jobs.ts";
import { inTurn, type JobRoom } from "../dir/jobs/room.ts";
import type { JobWork } from "../dir/jobs/running-jobs.ts";
import { createJobStore, JOBS_DIRECTORY, type JobStore } from "../dir/jobs/store.ts";
import type { RowJobContext } from "../dir/operations/context.ts";
import { jobIdOf, parseJobId } from "./job-ids.ts";
import { gone, type KeptTable, watchKept } from "./kept-table.ts";

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
  /** Whether the upstream does not have the table any more, so that nothing is written to its directory. */
  isGone: boolean;
  /** Whether leases are renewed. */
  isStarted: boolean;
  /** Number of jobs that run here, and of calls that may start some. */
  uses: number;
}

/** Maximum number of tables whose records are kept open without a job that runs. */
const MAX_OPEN = 1_000;

/** Maximum number of jobs whose records are found by their ids alone; twice as many as run and wait. */
const MAX_KNOWN = 2_000;

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
    const now = () => (records.isGone ? MACHINE_CLOCK : clock).now();
    const stored = unlessGone(createJobStore(store, keyIn(base, JOBS_DIRECTORY)), () => records.isGone);
    const jobs = createJobs({ ...times, store: stored, clock: { now }, room, log });
    const records: Records = { jobs, isGone: false, isStarted: false, uses: 0 };
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
  function attend({ id }: Job, kept: KeptTable): void {
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
    const endWatch = watchKept(kept, (reason, isGone) => {
      records.isGone ||= isGone;
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
    const kept = keep();
    try {
      await records.jobs.takeOver(callerKey(call), (job) => isOf(job, call, table));
      for (const job of records.jobs.active()) if (!attended.has(job.id)) attend(job, keep());
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
      if (records?.isGone) throw gone({ id: table });
      return job;
    },
    async cancel(id) {
      const { record = "" } = parseJobId(id) ?? {};
      return (await recordsOf.get(record)?.jobs.cancel(record)) ?? false;
    },
    async open(location = "") {
      const found = await recordsAt(location).jobs.open(location);
      for (const by of bound.get(location) ?? [])
        if (found.some((job) => isOf(job, by.call, by.table))) {
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

/** Whether a record is that of a job which a caller has started on a table. A writer of the table's directory may have put it there. */
function isOf({ startedBy, table, spec }: Job, call: Call, found: FoundTable): boolean {
  return (
    startedBy === digestOf(call) && spec["location"] === found.location && sameIdentifier(table, found.id)
  );
}

/** Returns a text that is equal for all calls of a caller, and does not show who it is. */
function digestOf(call: Call): string {
  return hash("sha256", callerKey(call), "base64url");
}

/** Returns a store that writes nothing once a table is gone: another one may be made in its place. */
function unlessGone(store: JobStore, isGone: () => boolean): JobStore {
  return {
    ...store,
    put: async (job) => (isGone() ? undefined : store.put(job)),
    finish: async (job) => (isGone() ? undefined : store.finish(job)),
  };
}
