import { create } from "@bufbuild/protobuf";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { type CommittedVersion, commitChange } from "./commit.ts";

/**
 * Drops an index in a commit of its own. The engine lets two drops of an index that begin at one version both succeed.
 *
 * @throws LanceError TableIndexNotFound if the newest version has no such index, and the errors of {@link commitChange}
 */
export async function dropIndex(
  dataset: DatasetRef,
  name: string,
  signal: AbortSignal,
): Promise<CommittedVersion> {
  return commitChange(
    dataset,
    () => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          value.removedIndices = indices.filter((index) => index.name === name);
          if (value.removedIndices.length === 0) throw indexNotFound(name);
          return indices.filter((index) => index.name !== name);
        },
      };
    },
    { signal },
  );
}

/** Returns the error for an index that a table does not have. */
export function indexNotFound(name: string): LanceError {
  return new LanceError("TableIndexNotFound", `index ${JSON.stringify(name)} does not exist`);
}
