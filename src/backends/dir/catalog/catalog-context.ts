import type { NameRule } from "../../../namespace/identifier.ts";
import type { StorageContext } from "../data/data-context.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import type { Layout } from "./base/layout.ts";
import type { Catalog } from "./catalog.ts";

/** Rows of a catalog, and the directories of its tables. */
export interface CatalogContext {
  readonly catalog: Catalog;
  readonly layout: Layout;
  /** Rule for the names of new objects. */
  readonly names: NameRule;
  /** The clock that dates the objects of the storage. */
  readonly clock: StorageClock;
  /** Changes that take directories from their tables. */
  readonly journal: {
    /** Returns the locations whose files any process is about to remove. */
    removing(): Promise<ReadonlySet<string>>;
    /** Whether a change is unfinished. */
    isOpen(change: string): Promise<boolean>;
  };
}

/** A catalog with the data of its tables. */
export interface TableContext extends CatalogContext, StorageContext {}
