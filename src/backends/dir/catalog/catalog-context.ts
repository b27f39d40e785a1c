import type { NameRule } from "../../../namespace/identifier.ts";
import type { KeyedLocks } from "../concurrency/keyed-locks.ts";
import type { Turns } from "../concurrency/turns.ts";
import type { WriteGate } from "../concurrency/write-gate.ts";
import type { Engine } from "../engine/engine.ts";
import type { ObjectStore } from "../format/storage.ts";
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
export interface TableContext extends CatalogContext {
  readonly engine: Engine;
  /** The turns of work that may hold a thread of the engine for long. */
  readonly engineTurns: Turns;
  /** The storage from its root, for direct reads and writes of the format. */
  readonly store: ObjectStore;
  /** Notes of long work on tables, which other processes read. */
  readonly work: {
    /** Notes work at a location; the returned function ends it. */
    begin(location: string): Promise<() => Promise<void>>;
    /** Whether any process is at work at a location, or fell silent a moment ago. */
    isActive(location: string): Promise<boolean>;
  };
  /** Keeps changes of tables and their upkeep apart; its keys are the paths of tables. */
  readonly gate: WriteGate;
  /**
   * Keeps everything that makes versions of a table and deletions of its newest versions apart; its keys are the names of
   * tables as `$` joins them.
   */
  readonly histories: WriteGate;
  /** Paths of tables of which upkeep has taken rows out of an index, to add them again. */
  readonly reindexed: Set<string>;
  /** Returns the locks of a purpose, which hold for the whole process. */
  readonly createLocks: (purpose: string) => KeyedLocks;
}
