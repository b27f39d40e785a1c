import { create } from "@bufbuild/protobuf";
import { Transaction_RestoreSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../dataset.ts";
import { copyMessage } from "../files/copy-message.ts";
import { readSegments } from "../files/index-section.ts";
import { readVersion } from "../versions/version-files.ts";
import { commitChange } from "./commit.ts";

/**
 * Takes the newest version back: a further version has the content of the one before it. The engine's own restoration
 * would also take back what others commit at this moment.
 *
 * @throws Error if the version is not the newest any more; LanceError as {@link commitChange}
 */
export async function takeNewestBack(dataset: DatasetRef, version: bigint): Promise<void> {
  const before = await readVersion(dataset, version - 1n);
  const indices = await readSegments(before);
  await commitChange(dataset, (manifest) => {
    if (manifest.version !== version) throw new Error("others have built on it");
    for (const name of Object.keys(manifest)) Reflect.deleteProperty(manifest, name);
    Object.assign(manifest, copyMessage(before.manifest));
    const value = create(Transaction_RestoreSchema, { version: version - 1n });
    return { operation: { case: "restore", value }, changeIndices: () => indices };
  });
}
