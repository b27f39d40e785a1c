import type { Identifier } from "../../../namespace/identifier.ts";
import type { FoundTable } from "../data/table-source.ts";
import type { ClusterCompaction } from "../operations/jobs/cluster-compaction.ts";
import type { ReadAhead } from "../operations/read/read-ahead.ts";
import type { UpkeepTimes } from "./activity.ts";
import type { UpkeepLeases } from "./lease.ts";
import type { TableUpkeepContext } from "./optimize.ts";

/** A table that is looked after, as its catalog has it now. */
export interface TendedTable {
  readonly context: TableUpkeepContext;
  readonly table: FoundTable;
  readonly leases: UpkeepLeases;
  /** The cluster that may join its fragments. Default: this process joins them. */
  readonly cluster?: TableCluster | undefined;
  /** Whether a job of another process works on the table. Default: such jobs do not matter. */
  isBusy?(): Promise<boolean>;
}

/** A cluster that joins fragments of tables. */
export interface TableCluster {
  /** Whether it joins the fragments of a table with that many rows. */
  takes(rows: number): boolean;
  /** Whether a job of any process has to join them. */
  isJoining(): Promise<boolean>;
  join(): Promise<ClusterCompaction>;
}

/** The tables that upkeep looks after, whatever catalog lists them. */
export interface UpkeepTables {
  /** The memory of large results, of which compactions take a part. */
  readonly readAhead: ReadAhead;
  /** The times that differ from those of a directory on a disk. */
  readonly times: Partial<UpkeepTimes>;
  /**
   * Yields all tables, in no particular order; changes may hide or repeat some.
   *
   * @param turn waited for before each request to the catalog after the first, if its listings take requests
   * @param signal ends these requests
   */
  walk(turn: () => Promise<void>, signal: AbortSignal): AsyncIterable<Identifier>;
  /**
   * Works on a table; returns undefined if there is none, or none that may be worked on.
   *
   * @param signal ends the requests by which the table is found
   * @throws the errors of `work`
   */
  withTable<T>(
    id: Identifier,
    work: (tended: TendedTable) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined>;
  /** Finishes what processes have left that died. Default: nothing is left. */
  finishAbandoned?(): Promise<void>;
  /** Removes what tables have left that are gone. Default: nothing is left. */
  removeRemains?(): Promise<void>;
}
