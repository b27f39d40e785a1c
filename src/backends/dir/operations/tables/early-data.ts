import type { Call } from "../../../../namespace/call/call.ts";
import type { DataContext } from "../../data/data-context.ts";
import { type Guarded, guardOpened } from "./call-data.ts";
import { requireTable } from "./find-table.ts";
import { isMain, type Reference } from "./open-data.ts";

/** Data of a table at its last known place and version. */
export interface EarlyData {
  readonly data: Promise<Guarded>;
  /**
   * Whether the place and the version are the newest ones; if not, nothing that was read may be answered.
   *
   * @throws LanceError the errors of {@link requireTable}
   */
  readonly isNewest: Promise<boolean>;
}

/**
 * Opens the data of the call's table as they are known, while the bucket is asked whether they are the newest ones: a read then takes as long as
 * the longer one of the two. The caller releases them.
 *
 * @returns undefined for a table that is not open, has just changed, or is on a disk
 */
export function openEarly(context: DataContext, call: Call, reference: Reference): EarlyData | undefined {
  const { engine, tables } = context;
  if (reference.version !== undefined || !isMain(reference.branch)) return undefined;
  const table = tables.lastFound?.(call.id);
  const lease = table && engine.acquireEarly(table.path);
  if (table === undefined || lease === undefined) return undefined;
  const found = requireTable(context, call, call.id, true);
  const isNewest = Promise.all([found, lease.isNewest]).then(
    ([{ path }, isSame]) => isSame && path === table.path,
  );
  isNewest.catch(() => {});
  const data = guardOpened(context, call, reference, { table, lease });
  // It matters only if the place and the version are the newest ones: the table may have been dropped.
  data.catch(() => {});
  return { data, isNewest };
}

/**
 * Reads early data, or opens the newest ones if they are not.
 *
 * @param open opens the newest data
 * @param read releases the data, also when it fails
 * @param discard ends a result that is not answered. Default: it has no end
 */
export async function readEarly<T>(
  early: EarlyData | undefined,
  open: () => Promise<Guarded>,
  read: (data: Guarded) => Promise<T>,
  discard: (result: T) => void = () => {},
): Promise<T> {
  if (early !== undefined) {
    const [result, isNewest] = await Promise.allSettled([early.data.then(read), early.isNewest]);
    if (isNewest.status === "fulfilled" && isNewest.value) {
      if (result.status === "fulfilled") return result.value;
      throw result.reason;
    }
    if (result.status === "fulfilled") discard(result.value);
    if (isNewest.status === "rejected") throw isNewest.reason;
  }
  return read(await open());
}
