import { create } from "@bufbuild/protobuf";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_DeleteSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../dataset.ts";
import { readTransactionMessage } from "../versions/transaction-records.ts";
import { readVersion } from "../versions/version-files.ts";
import { afterChange } from "./after-change.ts";
import { commitChange } from "./commit.ts";

/**
 * Checks the rows that the engine has appended while others committed, and takes them back if a column has got another type
 * meanwhile. The engine appends rows without looking at that: a column with another type is a new field in the format, of
 * which the rows have no values, so all of them would be null.
 *
 * @param version the version that the engine made
 * @throws LanceError ConcurrentModification, and nothing is added; OutcomeUnknown, if the rows cannot be taken back
 */
export async function checkAppended(dataset: DatasetRef, version: bigint): Promise<void> {
  await afterChange(async () => {
    const file = await readVersion(dataset, version);
    const operation = (await readTransactionMessage(dataset, file))?.operation;
    if (operation?.case !== "append" || !lacksValues(file.manifest, operation.value.fragments)) return;
    await takeBack(dataset, operation.value.fragments);
    throw new LanceError(
      "ConcurrentModification",
      "a column has got another type meanwhile, and no rows were added; try again",
    );
  }, "ConcurrentModification");
}

/** Whether a fragment has values of fields that are gone, and none of others. */
export function lacksValues({ fields }: Manifest, fragments: readonly DataFragment[]): boolean {
  const known = new Set(fields.map(({ id }) => id));
  const parents = new Set(fields.map(({ parentId }) => parentId));
  const leaves = fields.filter(({ id }) => !parents.has(id));
  // Another fragment, of a writer that read a later version, may have what one lacks.
  return fragments.some(({ files }) => {
    const written = new Set(files.flatMap((each) => each.fields));
    const isGone = [...written].some((id) => id >= 0 && !known.has(id));
    return isGone && leaves.some(({ id }) => !written.has(id));
  });
}

/** Removes appended fragments in a commit of its own. */
async function takeBack(dataset: DatasetRef, appended: readonly DataFragment[]): Promise<void> {
  const paths = new Set(appended.flatMap(({ files }) => files.map(({ path }) => path)));
  await commitChange(dataset, (manifest) => {
    const isAppended = ({ files }: DataFragment) => files.some(({ path }) => paths.has(path));
    const doomed = manifest.fragments.filter(isAppended);
    if (doomed.length < appended.length) throw new Error("the appended rows are in other files by now");
    manifest.fragments = manifest.fragments.filter((fragment) => !isAppended(fragment));
    const value = create(Transaction_DeleteSchema, { deletedFragmentIds: doomed.map(({ id }) => id) });
    return { operation: { case: "delete", value } };
  });
}
