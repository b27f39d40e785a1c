import type { Logger } from "pino";
import type { PartBufferPool } from "../../arrow/part-buffer.ts";
import type { Journal } from "./batch/journal.ts";
import type { Layout } from "./catalog/base-layout.ts";
import type { Catalog } from "./catalog/catalog.ts";
import type { Engine } from "./engine/engine.ts";
import type { ObjectStore } from "./format/storage.ts";
import type { StorageClock } from "./format/storage-clock.ts";
import type { Jobs } from "./jobs/jobs.ts";
import type { ReadAhead } from "./operations/read/read-ahead.ts";

/** What the operations of a directory work with. */
export interface DirContext {
  readonly catalog: Catalog;
  readonly layout: Layout;
  readonly engine: Engine;
  /** What changes of several files are about to do. */
  readonly journal: Journal;
  /** Long work, which goes on after the answer and after a restart. */
  readonly jobs: Jobs;
  /** The file system from its root, for reading and writing the format itself. */
  readonly store: ObjectStore;
  /** The time that the ages of objects are told by. */
  readonly clock: StorageClock;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. */
  readonly maxUploadBytes: number;
  /** The bytes of an upload that are written at once; a longer one is written in parts. */
  readonly uploadPartBytes: number;
  readonly uploadBuffers: PartBufferPool;
  /** The memory for results that are open. */
  readonly readAhead: ReadAhead;
  /** The most entries of a page. */
  readonly maxPageSize: number;
  /** How old the last look at the storage may be for a read, in milliseconds. */
  readonly maxStalenessMs: number;
  /** Whether writers have to commit with CreateTableVersion, where a table's properties do not say. */
  readonly managedVersioning: boolean;
}
