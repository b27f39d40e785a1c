import type { JsonObject } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DriverRewrite } from "../../../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { ClusterRuns } from "../../../../namespace/figures.ts";
import type { KeyedLocks } from "../../concurrency/locks.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { FunctionsKey, StoredFunctions } from "../functions/open-functions.ts";
import type { Job } from "../job.ts";
import type { ClusterWork, JobEngine } from "../job-engine.ts";
import { createDriverRecords, type DriverRecords } from "./driver-records.ts";
import { createRayClient } from "./ray-client.ts";
import { createRayEngine, type RayEngineOptions } from "./ray-engine.ts";

/** Options of a Ray cluster that does heavy work. */
export interface ClusterOptions
  extends ClusterWork,
    Pick<RayEngineOptions, "gatewayUrl" | "runtimeEnv" | "pollMs" | "lostMs"> {
  /** Addresses of the dashboards of heads, such as `http://head:8265`. */
  readonly addresses: readonly string[];
  /** Token of the cluster. Default: it asks for none. */
  readonly token?: string | undefined;
  /** Absolute directories, and places in S3 buckets, from which files may be imported. Default: none. */
  readonly importLocations?: readonly string[] | undefined;
  /** Has the workers run functions that owners have stored. Default: they run none. */
  readonly functions?: FunctionsKey | undefined;
  /** Counts the runs. Default: they are not counted. */
  readonly metrics?: ClusterRuns | undefined;
}

/** A cluster that does heavy work for the gateways of a catalog. */
export interface Cluster extends ClusterWork {
  readonly importLocations: readonly string[];
  readonly engine: JobEngine;
  readonly records: DriverRecords;
  /** Functions that its workers run. Default: they run none. */
  readonly functions: StoredFunctions | undefined;
  /** Does work on a table after the other work of this process on it: an index does not survive a compaction that ends first. */
  alone<T>(table: string, work: () => Promise<T>): Promise<T>;
  /** Defines how the jobs of a kind are described to their drivers. */
  describe(kind: string, task: DescribeTask): void;
  /** Defines which versions the drivers of the jobs of a kind may commit. Default: none. */
  allowCommits(kind: string, check: CheckCommit): void;
  /** Returns what the driver of a job has to do. @throws LanceError Unsupported for a kind that has no drivers */
  taskOf(job: Job, dataset: DatasetRef): Promise<JsonObject>;
  /** @throws LanceError InvalidInput for a version that is not what the job is for */
  checkCommit(job: Job, commit: DriverCommit): Promise<void>;
  close(): Promise<void>;
}

/** Describes the work of a job as lance-ray's functions take it. */
export type DescribeTask = (job: Job, dataset: DatasetRef) => Promise<JsonObject>;

/** A version that a driver wants to commit. */
export interface DriverCommit {
  readonly dataset: DatasetRef;
  /** The version before; undefined for a table without data. */
  readonly before: ManifestFile | undefined;
  readonly next: ManifestFile;
  /** The number of the version that its driver read. */
  readonly readVersion: bigint;
  readonly operation: Transaction["operation"];
  /** The commit message of its transaction. */
  readonly message: string | undefined;
  /** The fragments that its driver has rewritten, and of which version; undefined for other changes. */
  readonly rewrite: Pick<DriverRewrite, "readVersion"> | undefined;
}

/** Returns why a driver may not commit a version; undefined if it may. */
export type CheckCommit = (
  commit: DriverCommit,
  job: Job,
) => string | undefined | Promise<string | undefined>;

/** Parts of the catalog that a cluster uses. */
export interface ClusterParts {
  readonly store: ObjectStore;
  /** The directory of the jobs, as an object key. */
  readonly directory: string;
  /** Functions that the catalog keeps. Default: the workers run none. */
  readonly functions?: StoredFunctions | undefined;
  readonly locks: KeyedLocks;
  readonly log: Logger;
}

/** Opens a cluster without speaking to it. */
export function openCluster(
  options: ClusterOptions,
  { store, directory, functions, locks, log }: ClusterParts,
): Cluster {
  const client = createRayClient(options);
  const records = createDriverRecords(store, directory);
  const { minRows, kinds, workers, importLocations = [] } = options;
  const tasks = new Map<string, DescribeTask>();
  const checks = new Map<string, CheckCommit>();
  return {
    ...{ minRows, kinds, workers, importLocations, records, functions },
    alone: (table, work) => locks.withLocks([table], work),
    engine: createRayEngine({ ...options, client, records, log }),
    describe: (kind, task) => void tasks.set(kind, task),
    allowCommits: (kind, check) => void checks.set(kind, check),
    async checkCommit(job, commit) {
      const check = checks.get(job.kind) ?? (() => `drivers of job kind ${job.kind} must not commit`);
      const reason = await check(commit, job);
      if (reason !== undefined)
        throw new LanceError("InvalidInput", `the driver's version is refused: ${reason}`);
    },
    async taskOf(job, dataset) {
      const task = tasks.get(job.kind);
      if (task === undefined)
        throw new LanceError("Unsupported", `job kind ${job.kind} does not run on a cluster`);
      return { ...(await task(job, dataset)), workers: Number(job.spec["workers"] ?? workers) };
    },
    close: client.close,
  };
}
