import { create } from "@bufbuild/protobuf";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { copyMessage } from "../files/copy-message.ts";
import { commitChange } from "./commit.ts";

/**
 * Renames an index in a commit of its own.
 *
 * @param replace whether it replaces the indices of the new name
 * @throws LanceError TableIndexAlreadyExists if the new name is taken, ConcurrentModification if the index is gone, and the
 *   errors of {@link commitChange}
 */
export async function renameIndex(
  dataset: DatasetRef,
  { from, to, replace }: { readonly from: string; readonly to: string; readonly replace: boolean },
  signal: AbortSignal,
): Promise<void> {
  await commitChange(
    dataset,
    () => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(indices) {
          if (!replace && indices.some(({ name }) => name === to)) {
            throw new LanceError("TableIndexAlreadyExists", `another writer made an index ${to} meanwhile`);
          }
          value.removedIndices = indices.filter(({ name }) => name === from || name === to);
          value.newIndices = indices
            .filter(({ name }) => name === from)
            .map((segment) => Object.assign(copyMessage(segment), { name: to }));
          if (value.newIndices.length === 0) {
            throw new LanceError("ConcurrentModification", "another writer dropped the index concurrently");
          }
          const kept = indices.filter((index) => !value.removedIndices.includes(index));
          return [...kept, ...value.newIndices];
        },
      };
    },
    { signal },
  );
}
