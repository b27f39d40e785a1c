import type { Call } from "../../../namespace/call/call.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { NativeTable } from "../engine/native/native.ts";
import type { DatasetRef } from "../format/dataset.ts";

/** A table as its catalog knows it. */
export interface FoundTable {
  readonly id: Identifier;
  /** The location relative to the base. */
  readonly location: string;
  /** The absolute path, as in answers. */
  readonly path: string;
  readonly properties: Readonly<Record<string, string>>;
  /** Whether the catalog lists the table; a table of the first version of the format is a directory alone. */
  readonly listed: boolean;
}

/** The table of long work. */
export interface WorkPlace {
  /** The name when the work was planned; the table may have another one by now. */
  readonly id: Identifier;
  /** The location when the work was planned, which distinguishes the table from a later one of its name. */
  readonly location: string;
}

/** State of a table's directory: it has data, it is declared, or it has disappeared. */
export type DataState = "written" | "declared" | "lost";

/**
 * The catalog of tables, as far as the operations on their data know it. The manifest of a directory is one; the catalog of an upstream is
 * another.
 */
export interface TableSource {
  /**
   * Returns a table for a call; undefined if there is none.
   *
   * @param isOpening whether the call opens the table at the same time, where it was at the last look. Default: false
   */
  find(call: Pick<Call, "id">, id: Identifier, isOpening?: boolean): Promise<FoundTable | undefined>;
  /** Returns a table as it was at the last look, so that it can be opened or read during a check. Default: nothing happens before a check. */
  lastFound?(id: Identifier): FoundTable | undefined;
  /** Whether the catalog still lists a table at the location at which it was found. */
  isOwned(table: FoundTable): Promise<boolean>;
  /** Hides what a change has made again at the location of a table that was dropped meanwhile. */
  hideRemains(table: FoundTable): Promise<void>;
  /**
   * Checks that a table was not dropped before it got its data.
   *
   * @throws LanceError ConcurrentModification
   */
  confirmWritten(table: FoundTable): Promise<void>;
  /** Does long work on a table that commits, wherever the table is by now. @throws LanceError TableNotFound; the errors of `work` */
  duringWork<T>(place: WorkPlace, work: (table: FoundTable) => Promise<T>): Promise<T>;
  /** Returns the state of a table's directory. */
  dataState(table: FoundTable): Promise<DataState>;
  /** Checks that no symbolic link leads a table elsewhere. @throws LanceError InvalidInput */
  checkNoEscape(table: FoundTable): Promise<void>;
  /**
   * Checks the version at which a handle is, before its rows are read. Default: every version may be read.
   *
   * @throws LanceError PermissionDenied
   */
  checkVersion?(dataset: DatasetRef, native: Pick<NativeTable, "version">): Promise<void>;
  /**
   * Returns the key of the directory in which rows are staged.
   *
   * @param table the table that gets the rows, unless it does not exist yet
   */
  stagingBaseOf(table: FoundTable | undefined): string;
  readonly properties: TableProperties;
}

/** Properties of tables, which a change of rows may set. */
export interface TableProperties {
  /** Maximum size of an object's properties, in bytes. */
  readonly maxBytes: number;
  /** Checks properties that a call is about to add. @throws LanceError InvalidInput, PayloadTooLarge, Unsupported */
  checkAdded(call: Pick<Call, "id">, added: Readonly<Record<string, string>>): Promise<void>;
  /** Adds properties to those of a table, and returns all of them. @throws LanceError ConcurrentModification */
  add(table: FoundTable, added: Readonly<Record<string, string>>): Promise<Record<string, string>>;
}
