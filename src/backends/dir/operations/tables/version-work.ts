import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { latestVersion } from "../../format/versions/version-files.ts";

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
