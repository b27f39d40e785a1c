import type { ArrowSchema } from "../../../../arrow/schema.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import { timeLimit, untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall, repeatConflicts } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { countMatching } from "../../engine/passing-rows.ts";
import type { RowWidths } from "../../engine/row-widths.ts";
import { exactFilter } from "../../engine/sql/exact-filter.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readIndices } from "../../format/files/index-section.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { versionWork } from "./long-work.ts";
import {
  datasetOf,
  isMain,
  type OpenedTable,
  openData,
  type Reference,
  requireOpenTable,
} from "./open-data.ts";
import { misreadOf, type Reads, refuseMisread } from "./refuse-misread.ts";
import { watchForDrop } from "./watch-for-drop.ts";

/** Result of work that makes a version. */
interface Made {
  readonly version: number;
}

/** A table's data for the duration of one call. */
export interface Guarded {
  readonly table: NativeTable;
  /** The table as the catalog knows it. */
  readonly found: FoundTable;
  /** Returns the table's schema when the call began, or later. @throws LanceError the errors of `wait` */
  schema(): Promise<ArrowSchema>;
  /** Returns the number of the table's rows when the call began, or later. @throws LanceError the errors of `wait` */
  rowCount(): Promise<number>;
  /**
   * Returns the number of rows that meet a checked condition, before the deadline of the call.
   *
   * @param width number of bytes of a row in the wide columns that the condition reads; 0 if it reads none
   * @throws LanceError the errors of `wait`
   */
  countRows(where: string, width: number): Promise<number>;
  /**
   * Returns the paths of the fields that had a full-text index when the call began, or later, each with the number of rows that are not in it.
   *
   * @throws LanceError the errors of `wait`
   */
  textFields(): Promise<ReadonlyMap<string, number>>;
  /** Returns the size of the table's data files per row, in bytes. @throws LanceError the errors of `wait` */
  averageRow(): Promise<number>;
  /** Widths of the rows of the table's recent results. */
  readonly widths: RowWidths;
  /**
   * Refuses to read columns that the engine misreads; see {@link refuseMisread}. Other callers may move the table to a newer version at any
   * time, so a change asks just before the engine begins, and a read asks again when it has begun.
   *
   * @param reads called if the table has such columns
   * @throws LanceError Unsupported; the errors of `reads` and of `wait`
   */
  refuseMisread(reads: () => Reads | Promise<Reads>): Promise<void>;
  /** Returns a checked condition as {@link safeFilter} does. @throws LanceError the errors of `wait` */
  safeFilter<T extends string | undefined>(filter: T): Promise<T | string>;
  /**
   * Runs engine work and waits for it until the call ends at the latest. The engine goes on with work that it has begun, which keeps its turn until
   * it ends.
   *
   * @param inTurn whether the work waits for a turn, see {@link createEngineTurns}. Default: see {@link Guarded.takeTurns}
   * @throws LanceError the engine's errors; Cancelled
   */
  wait<T>(work: () => Promise<T>, inTurn?: boolean): Promise<T>;
  /** Makes all further engine work of the call wait for a turn, because its condition or its search is costly. */
  takeTurns(): void;
  /**
   * Runs work that makes a version of the table, like `wait`, and syncs the version to survive a loss of power. The work
   * is repeated while others commit first.
   *
   * @param work returns the version that it has made
   * @param onCommitted called when readers see the version, before it is synced
   */
  commit<T extends Made>(work: () => Promise<T>, onCommitted?: () => void): Promise<T>;
  /** Releases the handle once the engine has finished the work of the call. */
  release(): void;
  /** Resolves when the handle is released and the engine has finished the work of the call. */
  readonly ended: Promise<void>;
}

/**
 * Opens the data of the call's table at a reference; the caller releases it.
 *
 * @param known the table, when the caller has looked it up already
 * @throws LanceError the errors of `openData` and `requireTable`; Cancelled
 */
export async function openGuarded(
  context: DataContext,
  call: Call,
  reference: Reference,
  known?: FoundTable,
): Promise<Guarded> {
  const opened =
    known === undefined ? await requireOpenTable(context, call) : { table: known, lease: undefined };
  return guardOpened(context, call, reference, opened);
}

/** Guards the data of a table that is found, and perhaps open already; see {@link openGuarded}. */
export async function guardOpened(
  context: DataContext,
  call: Call,
  reference: Reference,
  { table: found, lease: opened }: OpenedTable,
): Promise<Guarded> {
  const { orDropped, refuseDropped } = watchForDrop(context, found);
  const noteIfLong = startLongChange(context, found.location);
  const opening = openData(context, found, reference, opened).catch(orDropped);
  const lease = await untilAborted(opening, call.signal, (late) => late.release());
  let [running, released, takesTurns] = [0, false, false];
  const caller = callerKey(call);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const releaseWhenDone = () => {
    if (!released || running > 0) return;
    lease.release();
    end();
  };
  /** Runs work when it is its turn; a call that has ended needs no result any more. */
  const whenDue = <T>(work: () => Promise<T>) =>
    context.engineTurns.run(work, () => !call.signal.aborted, caller) as Promise<T>;
  async function wait<T>(work: () => Promise<T>, inTurn = takesTurns): Promise<T> {
    // Work within other work of the call has its turn.
    const isAlone = ++running === 1;
    const result = engineCall(() => (inTurn && isAlone ? whenDue(work) : work()))
      .catch(orDropped)
      .finally(() => {
        running--;
        releaseWhenDone();
      });
    return untilAborted(result, call.signal);
  }
  const dataset = () => datasetOf(context, found, reference.branch);
  return {
    table: lease.table,
    found,
    schema: () => wait(lease.schema),
    rowCount: () => wait(lease.rowCount),
    countRows: (where, width) =>
      wait(async () =>
        countMatching(lease.table, where, {
          width,
          tableRows: await lease.rowCount(),
          timeoutMs: timeLimit(call),
          isWanted: () => !call.signal.aborted,
        }),
      ),
    textFields: () => wait(lease.textFields),
    averageRow: () => wait(lease.averageRow),
    widths: lease.widths,
    refuseMisread: (reads) =>
      wait(async () => {
        const find = async () => {
          const version = BigInt(await lease.table.version());
          return findMisread(dataset(), (await readVersion(dataset(), version)).manifest);
        };
        const paths = await misreadOf(await lease.schema(), find);
        if (paths.length > 0) refuseMisread(paths, await reads());
      }),
    safeFilter: (filter) => wait(() => safeFilter(filter, dataset(), lease.table, lease.schema)),
    wait,
    takeTurns() {
      takesTurns = true;
    },
    commit: (work, onCommitted) =>
      wait(async () => {
        const before = await lease.version();
        const begun = performance.now();
        const result = await noteIfLong(() =>
          context.gate.pass(found.path, () =>
            versionWork(before, dataset(), () =>
              repeatConflicts(lease.table, work, () => !call.signal.aborted),
            ),
          ),
        );
        // Changes that the engine has no call for are committed beside the handle, which then stays where it was.
        if (result.version > before && (await lease.table.version()) === result.version)
          lease.noteMade(result.version, begun);
        onCommitted?.();
        await afterChange(() => refuseDropped(dataset(), result.version), "TableNotFound");
        await afterChange(() => syncVersion(dataset(), BigInt(result.version)));
        return result;
      }),
    release() {
      released = true;
      releaseWhenDone();
    },
    ended,
  };
}

/** Works with the data of the call's table; see {@link openGuarded}. */
export async function withGuarded<T>(
  context: DataContext,
  call: Call,
  reference: Reference,
  work: (data: Guarded) => Promise<T>,
): Promise<T> {
  const data = await openGuarded(context, call, reference);
  try {
    return await work(data);
  } finally {
    data.release();
  }
}

/**
 * Returns data that stay at the version of the given data, which it releases: ids of rows hold for a single version, and other callers may move a table
 * further. Data at a reference belong to their call already. A table with a write log has rows that are in no version, so its data stay as they are.
 *
 * @param reference that of the given data
 * @throws LanceError as {@link openGuarded}, and the given data are not released
 */
export async function atOneVersion(
  context: DataContext,
  call: Call,
  reference: Reference,
  data: Guarded,
): Promise<Guarded> {
  if (reference.version !== undefined || !isMain(reference.branch)) return data;
  if (await data.wait(() => data.table.getLsmWriteSpec())) return data;
  const version = BigInt(await data.wait(() => data.table.version()));
  const own = await openGuarded(context, call, { version }, data.found);
  data.release();
  return own;
}

/**
 * Time after which a change is noted, in milliseconds. Pruning leaves a version for three times as long after another has
 * replaced it.
 */
const NOTE_AFTER_MS = 10_000;

/**
 * Prepares to note a change of a table that takes long, in the storage. The engine computes a change on the version at its beginning
 * and looks at the later ones for conflicts; it does not miss those that another process has pruned.
 *
 * @returns does the change, and notes it for the rest of its time when it has taken long since the preparation
 */
function startLongChange({ work }: Pick<DataContext, "work">, location: string) {
  const sinceOpen = startStopwatch();
  return async <T>(change: () => Promise<T>): Promise<T> => {
    let noted: Promise<(() => Promise<void>) | undefined> | undefined;
    const note = () => {
      // Without the note, a change is as safe as one that is short.
      noted = work.begin(location).catch(() => undefined);
    };
    const timer = setTimeout(note, NOTE_AFTER_MS - sinceOpen()).unref();
    try {
      return await change();
    } finally {
      clearTimeout(timer);
      await (await noted)?.();
    }
  };
}

/** Returns a checked condition over a table in the form in which the engine evaluates it correctly; see {@link exactFilter}. */
async function safeFilter<T extends string | undefined>(
  filter: T,
  dataset: DatasetRef,
  native: Pick<NativeTable, "version">,
  schema: () => Promise<ArrowSchema>,
): Promise<T | string> {
  if (filter === undefined) return filter;
  const { fields } = await schema();
  return exactFilter(filter, fields, async () => {
    try {
      const version = BigInt(await native.version());
      return (await readIndices(await readVersion(dataset, version))).map(({ type }) => type);
    } catch {
      // The manifest may be newer than the gateway, or pruned by now.
      return undefined;
    }
  });
}
