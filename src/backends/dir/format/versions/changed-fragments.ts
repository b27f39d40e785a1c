import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import { readTransactionMessage } from "./transaction-records.ts";
import { findVersions, newestOf } from "./version-files.ts";

/**
 * Checks that the fragments in which a staged manifest deletes or updates rows are in the version that it follows.
 *
 * Lance applies such a transaction to the fragments that it finds and ignores the others. A writer that has computed a
 * change before a compaction, and commits it as if it had read the compacted version, would therefore lose deletions
 * and duplicate updated rows without an error.
 *
 * Lance also compares such a transaction with those of all versions that its writer has not read, and does not notice that some of them
 * have been pruned.
 *
 * @param readPrevious reads the version that the staged one follows; undefined if it has been deleted
 * @throws LanceError ConcurrentModification if a fragment is gone, or a version that the writer has not read
 */
export async function checkChangedFragments(
  dataset: DatasetRef,
  staged: ManifestFile,
  readPrevious: () => Promise<Manifest | undefined>,
): Promise<void> {
  const transaction = await readTransactionMessage(dataset, staged);
  const changed = changedFragments(transaction);
  if (transaction === undefined || changed.length === 0) return;
  const previous = await readPrevious();
  if (previous === undefined) return;
  await checkUnread(dataset, transaction.readVersion, previous.version);
  const existing = new Set(previous.fragments.map(({ id }) => id));
  const gone = changed.filter((id) => !existing.has(id));
  if (gone.length === 0) return;
  throw new LanceError(
    "ConcurrentModification",
    `version ${previous.version} lacks the changed fragments ${gone.join(", ")}: they were compacted or removed after they were read`,
  );
}

/** Checks that no version is gone between the one that a writer has read and the newest, which the storage need not have yet. */
async function checkUnread(dataset: DatasetRef, read: bigint, newest: bigint): Promise<void> {
  if (read + 1n >= newest) return;
  const unread = (await findVersions(dataset)).filter(({ version }) => version > read);
  const stored = newestOf(unread)?.version ?? read;
  if (BigInt(unread.length) === stored - read) return;
  throw new LanceError(
    "ConcurrentModification",
    `versions between ${read}, which the change is based on, and ${newest} were pruned, so its conflicts with them are unknown`,
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
