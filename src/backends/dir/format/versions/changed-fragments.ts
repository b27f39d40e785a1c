import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import { readTransactionMessage } from "./transaction-records.ts";

/**
 * Checks that the fragments in which a staged manifest deletes or updates rows are in the version that it follows.
 *
 * Lance applies such a transaction to the fragments that it finds and ignores the others. A writer that has computed a
 * change before a compaction, and commits it as if it had read the compacted version, would therefore lose deletions
 * and duplicate updated rows without an error.
 *
 * @param readPrevious reads the version that the staged one follows; undefined if it has been deleted
 * @throws LanceError ConcurrentModification if a fragment is gone
 */
export async function checkChangedFragments(
  dataset: DatasetRef,
  staged: ManifestFile,
  readPrevious: () => Promise<Manifest | undefined>,
): Promise<void> {
  const changed = changedFragments(await readTransactionMessage(dataset, staged));
  if (changed.length === 0) return;
  const previous = await readPrevious();
  if (previous === undefined) return;
  const existing = new Set(previous.fragments.map(({ id }) => id));
  const gone = changed.filter((id) => !existing.has(id));
  if (gone.length === 0) return;
  throw new LanceError(
    "ConcurrentModification",
    `version ${previous.version} lacks the changed fragments ${gone.join(", ")}: they were compacted or removed after they were read`,
  );
}

/** Returns the ids of the fragments in which a transaction deletes or updates rows. */
function changedFragments(transaction: Transaction | undefined): readonly bigint[] {
  switch (transaction?.operation.case) {
    case "delete": {
      const { updatedFragments, deletedFragmentIds } = transaction.operation.value;
      return [...updatedFragments.map(({ id }) => id), ...deletedFragmentIds];
    }
    case "update": {
      const { updatedFragments, removedFragmentIds } = transaction.operation.value;
      return [...updatedFragments.map(({ id }) => id), ...removedFragmentIds];
    }
    default:
      return [];
  }
}
