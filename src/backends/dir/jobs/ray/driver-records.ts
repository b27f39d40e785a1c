import { createHash, timingSafeEqual } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { parseJsonFile } from "../../format/files/damaged-file.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { EngineProgress } from "../job-engine.ts";

/** The end of a driver's run, as the driver has reported it. */
export interface DriverReport {
  readonly result?: JsonObject | undefined;
  readonly failure?: { readonly message: string; readonly retryable: boolean } | undefined;
}

/**
 * Facts about the drivers of jobs: objects beside the records of jobs, so that a driver may call any gateway of the
 * catalog. Of a driver's key there is only the digest.
 */
export interface DriverRecords {
  /** Whether a digest of the key of a run is known. */
  hasKey(jobId: string, run: number): Promise<boolean>;
  /** Records the digest of the key of a run; the first one counts. */
  noteKey(jobId: string, run: number, digest: string): Promise<void>;
  /** Whether a key is that of a run. */
  isKey(jobId: string, run: number, key: string): Promise<boolean>;
  progressOf(jobId: string): Promise<EngineProgress | undefined>;
  noteProgress(jobId: string, progress: EngineProgress): Promise<void>;
  reportOf(jobId: string, run: number): Promise<DriverReport | undefined>;
  /** Records the end of a run; the first report counts. */
  noteReport(jobId: string, run: number, report: DriverReport): Promise<void>;
  /** Whether a run counts no longer, so that its driver is refused. */
  hasEnded(jobId: string, run: number): Promise<boolean>;
  end(jobId: string, run: number): Promise<void>;
  /** Removes everything about the runs of a job. */
  forget(jobId: string): Promise<void>;
}

/** Number of runs of a job: a run whose driver dies is followed by another. */
export const MAX_RUNS = 3;

/** Directory of the drivers below that of the jobs. */
export const DRIVERS_DIRECTORY = "drivers";

const RUN_FILES = ["key", "report", "ended"] as const;

/** Opens the records in the directory of the jobs, given as an object key. It writes nothing before the first run. */
export function createDriverRecords(store: ObjectStore, directory: string): DriverRecords {
  const nameOf = (jobId: string, run: number, file: (typeof RUN_FILES)[number]) => `${jobId}.${run}.${file}`;
  const keyOf = (name: string) => `${directory}/${DRIVERS_DIRECTORY}/${name}`;
  const progressName = (jobId: string) => `${jobId}.progress`;

  async function read<T>(name: string): Promise<T | undefined> {
    const bytes = await store.get(keyOf(name));
    return bytes && (parseJsonFile(name, bytes) as T);
  }
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value));
  const has = async (name: string) => (await store.head(keyOf(name))) !== undefined;

  return {
    hasKey: (jobId, run) => has(nameOf(jobId, run, "key")),
    async noteKey(jobId, run, digest) {
      await store.putIfAbsent(keyOf(nameOf(jobId, run, "key")), encode({ digest }));
    },
    async isKey(jobId, run, key) {
      const { digest = "" } = (await read<{ digest?: string }>(nameOf(jobId, run, "key"))) ?? {};
      const [known, given] = [Buffer.from(digest, "hex"), createHash("sha256").update(key).digest()];
      return known.byteLength === given.byteLength && timingSafeEqual(known, given);
    },
    progressOf: (jobId) => read(progressName(jobId)),
    noteProgress: (jobId, progress) => store.put(keyOf(progressName(jobId)), encode(progress)),
    reportOf: (jobId, run) => read(nameOf(jobId, run, "report")),
    async noteReport(jobId, run, report) {
      await store.putIfAbsent(keyOf(nameOf(jobId, run, "report")), encode(report));
    },
    hasEnded: (jobId, run) => has(nameOf(jobId, run, "ended")),
    async end(jobId, run) {
      await store.putIfAbsent(keyOf(nameOf(jobId, run, "ended")), encode({}));
    },
    async forget(jobId) {
      const names = Array.from({ length: MAX_RUNS }, (_, at) =>
        RUN_FILES.map((file) => nameOf(jobId, at + 1, file)),
      );
      for (const name of [...names.flat(), progressName(jobId)]) await store.delete(keyOf(name));
    },
  };
}
