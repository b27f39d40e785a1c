import type { Logger } from "pino";
import type { Catalog } from "../catalog/catalog.ts";
import type { Layout } from "../catalog/layout.ts";
import type { Engine } from "../engine/engine.ts";
import type { ObjectStore } from "../format/storage.ts";

/** What the operations of a directory work with. */
export interface DirContext {
  readonly catalog: Catalog;
  readonly layout: Layout;
  readonly engine: Engine;
  /** The file system from its root, for reading and writing the format itself. */
  readonly store: ObjectStore;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. */
  readonly maxUploadBytes: number;
  /** The most entries of a page. */
  readonly maxPageSize: number;
}
