import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { latestVersion, readVersionIfThere } from "../../format/versions/version-files.ts";
import { KEEP_VERSIONS } from "./prune-and-compact.ts";

/** Property of a commit's transaction: the name of the transaction that made the version before. */
const FOLLOWS = "lance_gateway.follows";

/** Returns the properties of the transaction of a commit that follows a version. */
export function propertiesAfter({ transactionFile }: Manifest): Readonly<Record<string, string>> {
  return { [FOLLOWS]: transactionFile };
}

/**
 * Whether a version that was made here is part of the history. If others had made and pruned a version of its number before, the
 * history continues without it.
 *
 * @throws LanceError OutcomeUnknown, if the version after it is gone, or another implementation has made that one
 */
export async function isPartOfHistory(dataset: DatasetRef, made: Manifest): Promise<boolean> {
  const newest = await latestVersion(dataset);
  // Pruning keeps so many versions, so none of this number can have gone.
  if (newest === undefined || newest.version < made.version + BigInt(KEEP_VERSIONS)) return true;
  const next = await readVersionIfThere(dataset, made.version + 1n);
  const transaction = next && (await readTransactionMessage(dataset, next));
  const follows = transaction?.transactionProperties[FOLLOWS];
  if (follows !== undefined && made.transactionFile !== "") return follows === made.transactionFile;
  throw new LanceError(
    "OutcomeUnknown",
    "the commit took so long that others have removed what shows whether it counts; look before you repeat it",
  );
}
