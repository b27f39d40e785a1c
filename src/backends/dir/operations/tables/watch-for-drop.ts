import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { ownerOf, updateMark } from "../../catalog/table-marks.ts";
import type { FoundTable } from "./lookup.ts";

/** Failures of the engine when files or the directory of a table are gone. */
const OF_MISSING_FILES = ["DataLoss", "Internal"] as const;

/** Finds out whether a table is dropped in the middle of work on it. */
export interface DropWatch {
  /**
   * Throws a failure of the work again, but TableNotFound instead of a failure of the engine if the table has been dropped since: then the
   * engine misses its files. In the root, another table may be in its place already.
   */
  orDropped(error: unknown): Promise<never>;
  /**
   * Refuses work that has made a version right after the drop, on a disk: the engine makes the directory again. It hides a directory
   * of the root, which would show as the dropped table. In a bucket, a look would cost as much as the work.
   *
   * @throws LanceError TableNotFound
   */
  refuseDropped(): Promise<void>;
}

/** Begins to watch a table, before work on it begins. */
export function watchForDrop(context: TableContext, { path, location, listed }: FoundTable): DropWatch {
  const { files, keyOf } = context.store;
  const identity = () => files?.directoryStamp(keyOf(path))?.identity;
  const before = identity();
  const hasOwner = async () => (await ownerOf(context, location)) !== undefined;
  return {
    async orDropped(error) {
      const isDropped = async () => identity() !== before || (listed && !(await hasOwner()));
      const mayMiss = OF_MISSING_FILES.some((name) => isLanceError(error, name));
      throw mayMiss && (await isDropped()) ? dropped(error) : error;
    },
    async refuseDropped() {
      if (identity() === before || (await hasOwner())) return;
      await updateMark(context, location);
      throw dropped();
    },
  };
}

function dropped(cause?: unknown): LanceError {
  return new LanceError("TableNotFound", "the table was dropped meanwhile", { cause });
}
