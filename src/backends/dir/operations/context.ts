import type { PartBufferPool } from "../../../arrow/ipc/part-buffer.ts";
import type { ChangeContext } from "../batch/journal.ts";
import type { Staleness } from "../concurrency/shared-checks.ts";
import type { DataContext } from "../data/data-context.ts";
import type { JobEngine } from "../jobs/job-engine.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Cluster } from "../jobs/ray/cluster.ts";
import type { Permission, Vendor } from "../vending/vendor.ts";
import type { CachePins } from "./read/pins.ts";
import type { ReadAhead } from "./read/read-ahead.ts";

/** Limits and memory of uploads. */
export interface UploadContext {
  /** Maximum size of an upload, both as sent and after decompression, in bytes. */
  readonly maxUploadBytes: number;
  /** Number of bytes of an upload that are written at once; a longer upload is written in parts. */
  readonly uploadPartBytes: number;
  readonly uploadBuffers: PartBufferPool;
}

/** Jobs, as the operations on the data of tables start and find them. */
export interface RowJobContext {
  readonly jobs: Pick<Jobs, "define" | "submit" | "runUnrecorded" | "ended" | "cancel" | "open" | "cancelAt">;
}

/** Jobs that go on after the answer and after a restart. */
export interface JobContext {
  readonly jobs: Jobs;
}

/** The engines of heavy work. */
export interface EngineContext {
  /** Does the heavy work of jobs in this process. */
  readonly embedded: JobEngine;
  /** Does the heavy work of jobs elsewhere. Default: this process does it. */
  readonly cluster?: Cluster | undefined;
}

/** The cache on disk, as far as the files of a directory are concerned. */
export interface FileCache {
  /** Reads files into it, those of the first keys first, until it has no more room. */
  fill(keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Returns the sizes of the blocks of some files that are in it, in bytes. */
  measure(keys: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** Memory of open query results. */
export interface ReadContext {
  readonly readAhead: ReadAhead;
  /** Maximum number of words to which the fuzzy conditions of a search may expand together. */
  readonly maxSearchExpansions: number;
  /** The cache on disk. Default: none. */
  readonly cache?: FileCache | undefined;
  /** Tables that it keeps. Default: none. */
  readonly pins?: CachePins | undefined;
}

/** The limit of listings. */
export interface PageContext {
  /** Maximum number of entries of a page. */
  readonly maxPageSize: number;
}

/** How clients read and write the data of tables themselves. */
export interface DirectAccessContext {
  /** Whether writers have to commit with CreateTableVersion, unless the properties of a table say otherwise. */
  readonly managedVersioning: boolean;
  /** Options with which clients open the storage, without credentials. */
  readonly clientStorageOptions: Readonly<Record<string, string>>;
  /** Hands out credentials of the storage. Default: clients bring their own. */
  readonly vendor?: Vendor | undefined;
  /** The most that credentials may allow. Default: the vendor decides. */
  readonly mostVended?: Permission | undefined;
}

/** A catalog, changes of several of its files, and the data of its tables. */
export interface CatalogDataContext extends ChangeContext, DataContext {
  readonly work: ChangeContext["work"];
}

/** Everything that the operations of a directory work with. Each operation names the parts that it needs. */
export interface DirContext
  extends CatalogDataContext,
    UploadContext,
    JobContext,
    EngineContext,
    ReadContext,
    PageContext,
    DirectAccessContext {
  /** How old the state of reads may be. */
  readonly staleness: Staleness;
}
