import type { Logger } from "pino";
import type { KeyedLocks, WriteGate } from "../concurrency/locks.ts";
import type { Turns } from "../concurrency/turns.ts";
import type { Engine } from "../engine/engine.ts";
import type { ObjectStore } from "../format/storage.ts";
import type { TableSource } from "./table-source.ts";

/** A storage of tables, the engine that reads and writes it, and what keeps changes of the same table apart. */
export interface StorageContext {
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
  readonly log: Logger;
}

/** The data of tables, whatever catalog lists them. */
export interface DataContext extends StorageContext {
  /** The catalog of the tables. */
  readonly tables: TableSource;
}
