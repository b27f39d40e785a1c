import type { ArrowSchema } from "../../../../arrow/schema.ts";
import type { Call } from "../../../../namespace/call.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import { engineCall } from "../../engine/errors.ts";
import type { NativeTable } from "../../engine/native.ts";
import { syncVersion } from "../../format/sync-version.ts";
import { datasetOf, type FoundTable, openData, type Reference, requireTable } from "./lookup.ts";

/** A table's data for the time of one call. */
export interface Guarded {
  readonly table: NativeTable;
  /** The table's schema when the call began, or later. @throws LanceError as `wait` */
  schema(): Promise<ArrowSchema>;
  /**
   * Runs engine work and waits for it, but not beyond the end of the call.
   *
   * @throws LanceError, also for the engine's failures; Cancelled
   */
  wait<T>(work: () => Promise<T>): Promise<T>;
  /** The same for work that makes a version of the table, which survives a loss of power then. */
  commit<T>(work: () => Promise<T>): Promise<T>;
  /** Lets the handle go, once the engine is done with the work that was given up. */
  release(): void;
}

/**
 * Opens the data of the call's table at a reference; the caller releases it.
 *
 * @param known the table, when it has been looked up already
 * @throws LanceError as `openData` and `requireTable`; Cancelled
 */
export async function openGuarded(
  context: TableContext,
  call: Call,
  reference: Reference,
  known?: FoundTable,
): Promise<Guarded> {
  const found = known ?? (await requireTable(context, call.id));
  const opening = openData(context, found, reference);
  const lease = await untilAborted(opening, call.signal, (late) => late.release());
  let [running, released] = [0, false];
  const releaseWhenDone = () => {
    if (released && running === 0) lease.release();
  };
  async function wait<T>(work: () => Promise<T>): Promise<T> {
    running++;
    const result = engineCall(work).finally(() => {
      running--;
      releaseWhenDone();
    });
    return untilAborted(result, call.signal);
  }
  return {
    table: lease.table,
    schema: () => wait(lease.schema),
    wait,
    commit: (work) =>
      wait(async () => {
        const result = await work();
        await syncVersion(datasetOf(context, found, reference.branch));
        return result;
      }),
    release() {
      released = true;
      releaseWhenDone();
    },
  };
}

/** Works with the data of the call's table; see {@link openGuarded}. */
export async function withGuarded<T>(
  context: TableContext,
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
