import assert from "node:assert/strict";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { createVersion } from "../changes/staged-version.ts";
import { manifestKey } from "../dataset.ts";
import { buildManifestFile, readInheritedPart } from "../files/manifest-file.ts";
import { readVersion } from "./version-files.ts";

type Operation = MessageInitShape<typeof TransactionSchema>["operation"];

/**
 * Stages the version after the newest one, made by an operation.
 *
 * @param behind the number of versions that the writer has not read. Default: it has read the newest version
 */
async function stage(operation: Operation, behind = 0n) {
  const dataset = openFixture("new");
  const file = await readVersion(dataset);
  const version = file.manifest.version + 1n;
  const transaction = create(TransactionSchema, {
    uuid: "u",
    readVersion: file.manifest.version - behind,
    operation,
  } as MessageInitShape<typeof TransactionSchema>);
  const inherited = await readInheritedPart(file);
  const manifest = { ...file.manifest, version, transactionSection: BigInt(inherited.byteLength) };
  const stagedKey = `${manifestKey(dataset, version, "V2")}-1`;
  dataset.store.objects.set(
    stagedKey,
    buildManifestFile(inherited, toBinary(TransactionSchema, transaction), manifest, file.signature),
  );
  return { dataset, ids: manifest.fragments.map(({ id }) => id), staged: { version, stagedKey } };
}

const GONE = 1_000n;

const CHANGES: Readonly<Record<string, (id: bigint) => Operation>> = {
  "an update of rows": (id) => ({ case: "update", value: { updatedFragments: [{ id }] } }),
  "an update that empties a fragment": (id) => ({ case: "update", value: { removedFragmentIds: [id] } }),
  "a deletion of rows": (id) => ({ case: "delete", value: { updatedFragments: [{ id }] } }),
  "a deletion that empties a fragment": (id) => ({ case: "delete", value: { deletedFragmentIds: [id] } }),
};

describe("a staged version", () => {
  for (const [name, change] of Object.entries(CHANGES)) {
    it(`with ${name} is a conflict if the fragment is gone`, async () => {
      const { dataset, staged } = await stage(change(GONE));
      const conflict = (error: unknown) =>
        isLanceError(error, "ConcurrentModification") && error.message.includes(String(GONE));
      await assert.rejects(createVersion(dataset, staged), conflict);
      assert.equal(dataset.store.objects.has(staged.stagedKey), true);
    });

    it(`with ${name} is published if the fragment exists`, async () => {
      const { ids } = await stage(change(GONE));
      const { dataset, staged } = await stage(change(ids[0] as bigint));
      assert.equal((await createVersion(dataset, staged)).version, staged.version);
    });

    it(`with ${name} is a conflict if its writer cannot have seen a version in between, which was pruned`, async () => {
      const { ids } = await stage(change(GONE));
      const { dataset, staged } = await stage(change(ids[0] as bigint), 3n);
      const between = manifestKey(dataset, staged.version - 3n, "V2");
      const bytes = dataset.store.objects.get(between) as Uint8Array;
      dataset.store.objects.delete(between);
      await assert.rejects(createVersion(dataset, staged), (error) =>
        isLanceError(error, "ConcurrentModification"),
      );
      dataset.store.objects.set(between, bytes);
      dataset.store.objects.delete(manifestKey(dataset, staged.version - 4n, "V2"));
      assert.equal((await createVersion(dataset, staged)).version, staged.version);
    });
  }
});
