import { randomBytes } from "node:crypto";
import { basename } from "node:path";
import { isLanceError, type LanceError } from "../../../namespace/errors.ts";
import { forEachOf } from "../concurrency/for-each.ts";
import { damagedFile, parseJsonFile } from "../format/files/damaged-file.ts";
import type { ObjectEntry, ObjectInfo, ObjectStore } from "../format/storage.ts";
import { keyIn, listNames } from "../format/storage.ts";
import { isForCluster, type Job, type JobSummary } from "./job.ts";
import { createDriverRecords, DRIVERS_DIRECTORY, type DriverRecords } from "./ray/driver-records.ts";

/** Gets the id of each job whose record is damaged, and why it cannot be read. */
export type OnDamagedJob = (id: string, error: LanceError) => void;

/**
 * Jobs as JSON objects in the storage of the catalog: open ones under `open/`, finished ones under `done/`. A claim
 * is an object that only one process can create.
 */
export interface JobStore {
  /** Writes a job that has not ended. */
  put(job: Job): Promise<void>;
  /** Writes a job that has ended. */
  finish(job: Job): Promise<void>;
  get(id: string): Promise<Job | undefined>;
  /** Returns all jobs whose records can be read, the oldest first. It reads the record of a finished job once. */
  list(onDamaged: OnDamagedJob): Promise<readonly JobSummary[]>;
  /** Returns the jobs that have not ended. Nothing can be done about one with a damaged record, and the others go on. */
  listOpen(onDamaged: OnDamagedJob): Promise<Job[]>;
  /** Takes an attempt of a job; returns false if another process has it. */
  claim(job: Job, attempt: number): Promise<boolean>;
  /**
   * Returns when an attempt was taken, in milliseconds since 1970 by the storage's clock; undefined if it was not.
   */
  claimedAt(job: Job, attempt: number): Promise<number | undefined>;
  requestCancel(id: string): Promise<void>;
  isCancelRequested(id: string): Promise<boolean>;
  /**
   * Deletes the jobs that ended before a time, in milliseconds since 1970 by the storage's clock, and the oldest of those
   * beyond a number.
   */
  prune(before: number, keep: number): Promise<void>;
}

/** Directory of the jobs in the base of a catalog; implementations of the public format ignore it. */
export const JOBS_DIRECTORY = ".jobs";

/** How much is read of records whose writers may not be trusted. */
export interface RecordLimits {
  /** Maximum number of records of which a list consists; names beyond it are not looked at. */
  readonly records: number;
  /** Maximum length of a record, in bytes. */
  readonly recordBytes: number;
  /** Length of all records after which a list reads no more, in bytes. */
  readonly bytes: number;
}

/** Number of records that are read at a time: thousands at once would hold up everything else that reads the storage. */
const READS = 16;

const JOB_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Most attempts that a record may tell, each of which has a claim that the end of the job removes. */
const MAX_ATTEMPTS = 1_000;

/**
 * Creates the store of a directory, given as an object key. It writes nothing before the first job.
 *
 * @param limits what is read of the records. Default: everything
 */
export function createJobStore(store: ObjectStore, directory: string, limits?: RecordLimits): JobStore {
  const key = (folder: "open" | "done", id: string) => `${directory}/${folder}/${id}.json`;
  const claimKey = (id: string, attempt: number) => `${directory}/claims/${id}.${attempt}`;
  const cancelKey = (id: string) => `${directory}/cancelled/${id}`;
  /** Jobs whose records never change again, as of the last list. */
  let finished: ReadonlyMap<string, JobSummary> = new Map();

  async function read(folder: "open" | "done", id: string): Promise<Job | undefined> {
    const bytes = await bytesOf(folder, id);
    return bytes && parseJob(id, bytes);
  }
  async function bytesOf(folder: "open" | "done", id: string): Promise<Uint8Array | undefined> {
    if (limits === undefined) return store.get(key(folder, id));
    const { recordBytes } = limits;
    const bytes = await store.getRange(key(folder, id), 0, recordBytes + 1);
    if (bytes === undefined || bytes.length <= recordBytes) return bytes;
    throw damagedFile(`${id}.json`, `is longer than ${recordBytes} bytes`);
  }
  /** Returns the entries of records. Another file is somebody else's, or is behind a link. */
  async function entriesIn(folder: "open" | "done"): Promise<ObjectEntry[]> {
    const entries: ObjectEntry[] = [];
    const most = limits?.records ?? Number.POSITIVE_INFINITY;
    for await (const page of store.list(`${directory}/${folder}`)) {
      entries.push(...page);
      if (entries.length >= most) break;
    }
    return entries.slice(0, most).filter((entry) => JOB_ID.test(idOf(entry)));
  }
  const idsIn = async (folder: "open" | "done") => (await entriesIn(folder)).map(idOf);
  async function readAll(
    folder: "open" | "done",
    ids: readonly string[],
    onDamaged: OnDamagedJob,
  ): Promise<Job[]> {
    const jobs: Job[] = [];
    let left = limits?.bytes ?? Number.POSITIVE_INFINITY;
    let isFull = false;
    await forEachOf(ids, READS, async (id) => {
      try {
        if (left <= 0) {
          if (!isFull) onDamaged(id, damagedFile(`${id}.json`, "and others do not fit into the list"));
          isFull = true;
          return;
        }
        const bytes = await bytesOf(folder, id);
        left -= bytes?.length ?? 0;
        if (bytes !== undefined) jobs.push(parseJob(id, bytes));
      } catch (error) {
        if (!isLanceError(error, "DataLoss")) throw error;
        onDamaged(id, error);
      }
    });
    return jobs.sort((a, b) => a.createdAt - b.createdAt);
  }
  async function infosOfDone(): Promise<ObjectInfo[]> {
    const infos: ObjectInfo[] = [];
    await forEachOf(await entriesIn("done"), READS, async ({ name, info }) => {
      const found = info ?? (await store.head(keyIn(`${directory}/done`, name)));
      if (found !== undefined) infos.push(found);
    });
    return infos;
  }
  const encode = (job: Job) => Buffer.from(JSON.stringify(job, null, 2));

  return {
    put: (job) => store.put(key("open", job.id), encode(job)),
    async finish(job) {
      await store.put(key("done", job.id), encode(job));
      await store.delete(key("open", job.id));
      await store.delete(cancelKey(job.id));
      for (let attempt = 1; attempt <= job.attempts; attempt++) await store.delete(claimKey(job.id, attempt));
      if (isForCluster(job)) await createDriverRecords(store, directory).forget(job.id);
    },
    async get(id) {
      if (!JOB_ID.test(id)) return undefined;
      const open = await read("open", id);
      // A job may end between the two reads, and a process that died at the end of a job has left both records.
      return (await read("done", id)) ?? open;
    },
    async list(onDamaged) {
      const jobs = new Map<string, JobSummary>();
      for (const job of await readAll("open", await idsIn("open"), onDamaged))
        jobs.set(job.id, summaryOf(job));
      const done = await idsIn("done");
      // A job that also has an open record may be done once more.
      const final = done.filter((id) => !jobs.has(id));
      const unread = done.filter((id) => jobs.has(id) || !finished.has(id));
      const known = final.flatMap((id) => finished.get(id) ?? []);
      for (const job of [...known, ...(await readAll("done", unread, onDamaged))])
        jobs.set(job.id, summaryOf(job));
      finished = new Map(final.flatMap((id) => entryOf(jobs.get(id))));
      return [...jobs.values()].sort((a, b) => a.createdAt - b.createdAt);
    },
    async listOpen(onDamaged) {
      const open = await readAll("open", await idsIn("open"), onDamaged);
      // A job that a process recorded as done before it died is done.
      const done = new Set<string>();
      await forEachOf(open, READS, async ({ id }) => {
        if ((await store.head(key("done", id))) !== undefined) done.add(id);
      });
      return open.filter(({ id }) => !done.has(id));
    },
    claim: (job, attempt) => store.putIfAbsent(claimKey(job.id, attempt), randomBytes(16)),
    claimedAt: async ({ id }, attempt) => (await store.head(claimKey(id, attempt)))?.modifiedMillis,
    async requestCancel(id) {
      await store.put(cancelKey(id), Buffer.from(""));
      // The end of a job removes the requests that it finds.
      if ((await store.head(key("done", id))) !== undefined) await store.delete(cancelKey(id));
    },
    isCancelRequested: async (id) => (await store.head(cancelKey(id))) !== undefined,
    async prune(before, keep) {
      // A record is written when its job ends, so the time of the object is that of the end.
      const found = await infosOfDone();
      found.sort((a, b) => b.modifiedMillis - a.modifiedMillis);
      const old = found.filter(({ modifiedMillis }, place) => place >= keep || modifiedMillis < before);
      if (old.length === 0) return;
      // A process that died in finish() has left the open record, too: alone, it would be a job that starts again.
      await store.deleteAll(old.map((info) => `${directory}/open/${basename(info.key)}`));
      await store.deleteAll(old.map((info) => info.key));
    },
  };
}

const idOf = ({ name }: ObjectEntry) => name.replace(/\.json$/, "");

function parseJob(id: string, bytes: Uint8Array): Job {
  const name = `${id}.json`;
  const job = parseJsonFile(name, bytes) as Partial<Job>;
  if (job.id !== id || !isJob(job)) throw damagedFile(name, "holds no job of that id");
  return job;
}

const STATES: ReadonlySet<unknown> = new Set(["queued", "running", "succeeded", "failed", "cancelled"]);

/** Whether a record has everything that a list shows and a takeover reads, in the forms that they take. */
function isJob(job: Partial<Job>): job is Job {
  const { kind, table, spec, state, createdAt, finishedAt = 0, attempts = Number.NaN } = job;
  const { lease, error, events = [] } = job;
  return (
    typeof kind === "string" &&
    STATES.has(state) &&
    [createdAt, finishedAt, attempts].every(Number.isSafeInteger) &&
    attempts <= MAX_ATTEMPTS &&
    Array.isArray(table) &&
    isObject(spec) &&
    (lease === undefined || (isObject(lease) && Number.isFinite(lease.until))) &&
    (error === undefined || (isObject(error) && typeof error.message === "string")) &&
    Array.isArray(events) &&
    events.every(isObject)
  );
}

const isObject = (value: unknown) => typeof value === "object" && value !== null;

function summaryOf({ id, kind, table, spec, state, createdAt, finishedAt }: JobSummary): JobSummary {
  const { location, engine } = spec;
  const kept = { location, ...(engine !== undefined && { engine }) };
  return { id, kind, table, spec: kept, state, createdAt, finishedAt };
}

function entryOf(job: JobSummary | undefined): [string, JobSummary][] {
  return job === undefined ? [] : [[job.id, job]];
}

/** Opens what drivers have recorded about their runs, in a base directory. */
export function driverRecordsOf(store: ObjectStore, baseKey: string): DriverRecords {
  return createDriverRecords(store, keyIn(baseKey, JOBS_DIRECTORY));
}

/**
 * Returns the keys of files that jobs left in a base directory: claims, cancellations and drivers of jobs that are not open,
 * and the open records of jobs that have ended.
 */
export async function findJobFiles(store: ObjectStore, baseKey: string): Promise<string[]> {
  const directory = keyIn(baseKey, JOBS_DIRECTORY);
  const idsIn = async (folder: string) => {
    const names = await listNames(store, `${directory}/${folder}`);
    return names.map((name) => ({ name, id: name.split(".")[0] ?? "" })).filter(({ id }) => JOB_ID.test(id));
  };
  // Open jobs are listed last: a new job has its claim in the first lists and its record in the last.
  const folders = ["claims", "cancelled", DRIVERS_DIRECTORY, "done"];
  const [claims, cancelled, drivers, done] = await Promise.all(folders.map(idsIn));
  const open = (await idsIn("open")).map(({ id }) => id);
  const ended = new Set(done?.map(({ id }) => id));
  const alive = new Set(open.filter((id) => !ended.has(id)));
  return [
    ...(claims ?? []).filter(({ id }) => !alive.has(id)).map(({ name }) => `${directory}/claims/${name}`),
    ...(cancelled ?? [])
      .filter(({ id }) => !alive.has(id))
      .map(({ name }) => `${directory}/cancelled/${name}`),
    ...(drivers ?? [])
      .filter(({ id }) => !alive.has(id))
      .map(({ name }) => `${directory}/${DRIVERS_DIRECTORY}/${name}`),
    ...open.filter((id) => ended.has(id)).map((id) => `${directory}/open/${id}.json`),
  ];
}
