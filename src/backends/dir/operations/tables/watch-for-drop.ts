import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { dropVersions } from "../../batch/resolve.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { readVersion } from "../../format/versions/version-files.ts";

/** Failures of the engine when files or the directory of a table are gone. */
const OF_MISSING_FILES = ["DataLoss", "Internal"] as const;

/** Finds out whether a table is dropped in the middle of work on it. */
export interface DropWatch {
  /**
   * Throws a failure of the work again, but the error of a dropped table instead of a failure of the engine if the table has been dropped
   * since: then the engine misses its files. In the root, another table may be in its place already.
   */
  orDropped(error: unknown): Promise<never>;
  /**
   * Refuses work that has made a version right after the drop, on a disk: the engine makes the directory again. It hides a directory
   * of the root, which would show as the dropped table. From another table in its place it takes the version away, which nobody could
   * read because its files are gone. In a bucket, a look would cost as much as the work.
   *
   * @throws LanceError the error of a dropped table
   */
  refuseDropped(dataset: DatasetRef, version: number): Promise<void>;
}

/**
 * Begins to watch a table, before work on it begins.
 *
 * @param dropped creates the error of a dropped table. Default: TableNotFound.
 */
export function watchForDrop(
  context: DataContext,
  table: FoundTable,
  dropped: (cause?: unknown) => LanceError = notFound,
): DropWatch {
  const { path, listed } = table;
  const { tables } = context;
  const { files, keyOf } = context.store;
  const identity = () => files?.directoryStamp(keyOf(path))?.identity;
  const before = identity();
  const hasOwner = () => tables.isOwned(table);
  return {
    async orDropped(error) {
      const isDropped = async () => identity() !== before || (listed && !(await hasOwner()));
      const mayMiss = OF_MISSING_FILES.some((name) => isLanceError(error, name));
      throw mayMiss && (await isDropped()) ? dropped(error) : error;
    },
    async refuseDropped(dataset, version) {
      if (identity() === before) return;
      if (!(await hasOwner())) await tables.hideRemains(table);
      else if (await lacksFiles(dataset, BigInt(version)))
        await dropVersions(context, dataset, [{ start: BigInt(version), end: BigInt(version) + 1n }]);
      else return;
      throw dropped();
    },
  };
}

/** Whether a file of rows is gone that a version names in the directory of its table. */
async function lacksFiles(dataset: DatasetRef, version: bigint): Promise<boolean> {
  const { manifest } = await readVersion(dataset, version);
  const own = manifest.fragments.flatMap(({ files }) => files.filter(({ baseId }) => baseId === undefined));
  let isGone = false;
  await forEachOf(own, LOOKS, async ({ path }) => {
    if ((await dataset.store.head(`${dataDirectory(dataset)}/data/${path}`)) === undefined) isGone = true;
  });
  return isGone;
}

/** Number of files that are looked for at a time. */
const LOOKS = 16;

function notFound(cause?: unknown): LanceError {
  return new LanceError("TableNotFound", "the table was dropped concurrently", { cause });
}
