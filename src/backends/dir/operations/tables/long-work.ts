import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable, WorkPlace } from "../../data/table-source.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { latestVersion } from "../../format/versions/version-files.ts";

/**
 * Does work on a table that takes long and commits. A drop of the table does not wait for the work, but its directory
 * stays until the work ends, also in other processes: otherwise the engine would commit to a new table that was created
 * in the same place. A deletion of the table's newest versions waits for it.
 *
 * @throws LanceError TableNotFound, if the table was dropped or replaced; the errors of `work`
 */
export async function duringWork<T>(
  { histories, tables }: Pick<DataContext, "histories" | "tables">,
  place: WorkPlace,
  work: (table: FoundTable) => Promise<T>,
): Promise<T> {
  return histories.pass(joinIdentifier(place.id), () => tables.duringWork(place, work));
}

/**
 * Runs engine work that makes a version of a table. A failure whose text the gateway does not know may have followed the commit. Internal, after
 * which clients repeat a change, stays the answer only while the table has no version that the work may have made.
 *
 * @param before the newest version when the work began
 * @param work returns or throws what `engineCall` does
 * @throws LanceError OutcomeUnknown; the errors of `work`
 */
export async function versionWork<T>(
  before: number,
  dataset: DatasetRef,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isLanceError(error, "Internal")) throw error;
    const isUnchanged = await latestVersion(dataset).then(
      // A table that is gone has no new version either.
      (newest) => newest === undefined || newest.version === BigInt(before),
      () => false,
    );
    if (isUnchanged) throw error;
    throw new LanceError(
      "OutcomeUnknown",
      "the engine failed, and the change may have been made before that; look before you repeat it",
      { cause: error },
    );
  }
}
