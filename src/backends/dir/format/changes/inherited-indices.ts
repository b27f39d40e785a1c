import { create } from "@bufbuild/protobuf";
import { Transaction_CreateIndexSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../dataset.ts";
import { copyMessage } from "../files/copy-message.ts";
import { readSegments } from "../files/index-section.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

/**
 * Corrects where a new branch of a branch looks for indices that its parent has inherited itself. The engine looks for
 * all of them in the parent's own directory, so that each call that uses one of them fails.
 *
 * @throws LanceError the errors of {@link commitChange}
 */
export async function locateInherited(
  parent: DatasetRef,
  version: bigint,
  created: DatasetRef,
): Promise<void> {
  const file = await readVersion(parent, version);
  const pathOf = new Map(file.manifest.basePaths.map(({ id, path }) => [id, path]));
  const inherited = new Map<string, string>();
  for (const { uuid, baseId } of await readSegments(file)) {
    const path = baseId === undefined ? undefined : pathOf.get(baseId);
    if (path !== undefined) inherited.set(String(uuid?.uuid), path);
  }
  if (inherited.size === 0) return;
  await commitChange(created, (manifest) => {
    const value = create(Transaction_CreateIndexSchema);
    const idOf = new Map(manifest.basePaths.map(({ id, path }) => [path, id]));
    return {
      operation: { case: "createIndex", value },
      changeIndices(found) {
        return found.map((segment) => {
          const baseId = idOf.get(inherited.get(String(segment.uuid?.uuid)) ?? "");
          if (baseId === undefined || baseId === segment.baseId) return segment;
          const moved = Object.assign(copyMessage(segment), { baseId });
          value.removedIndices.push(segment);
          value.newIndices.push(moved);
          return moved;
        });
      },
    };
  });
}
