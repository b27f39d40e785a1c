import assert from "node:assert/strict";
import { clone } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { openFixture, saidOf } from "../../../../../test/fixtures/dir/format.ts";
import { ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { findTransaction, readTransaction } from "./transaction-records.ts";
import { readVersion } from "./version-files.ts";

describe("transactions of pylance", () => {
  for (const name of ["new", "old", "stable", "v1file"] as const) {
    it(`are found by version and by uuid in ${name}`, async () => {
      const dataset = openFixture(name);
      for (const [version, said] of Object.entries(saidOf(name).transactions)) {
        const found = await findTransaction(dataset, version);
        assert.equal(found.uuid, said.uuid);
        assert.equal(Number(found.readVersion), said.readVersion);
        assert.equal(found.version, BigInt(version));
        assert.equal(found.operation === "DropIndex" ? "CreateIndex" : found.operation, said.operation);
        assert.deepEqual(await findTransaction(dataset, said.uuid), found);
      }
    });
  }

  it("have their properties, and a separate name for dropping an index", async () => {
    const dataset = openFixture("new");
    const { properties } = await findTransaction(dataset, "2");
    assert.deepEqual({ ...properties }, { __lance_commit_message: "more", job: "nightly" });
    const names = [];
    for (let version = 1; version <= 8; version++) {
      names.push((await findTransaction(dataset, String(version))).operation);
    }
    const expected = [
      "Overwrite",
      "Append",
      "UpdateConfig",
      "UpdateConfig",
      "Delete",
      "CreateIndex",
      "DropIndex",
    ];
    assert.deepEqual(names, [...expected, "CreateIndex"]);
  });

  it("are found on a branch", async () => {
    const branch = { ...openFixture("new"), branch: "feature/a" };
    assert.equal((await findTransaction(branch, "3")).operation, "Clone");
    assert.equal((await findTransaction(branch, "4")).operation, "Append");
  });
});

describe("transactions", () => {
  it("are not found if they do not exist", async () => {
    for (const id of [
      "0",
      "9",
      "99999999999999999999999",
      "no-uuid",
      "00000000-0000-0000-0000-000000000000",
    ]) {
      const found = findTransaction(openFixture("new"), id);
      await assert.rejects(found, (error) => isLanceError(error, "TransactionNotFound"), id);
    }
  });

  it("are read from the place of older writers, and from a separate file", async () => {
    const dataset = openFixture("new");
    const file = await readVersion(dataset, 2n);
    const manifest = clone(ManifestSchema, file.manifest);
    const expected = await readTransaction(dataset, file);
    manifest.transactionSectionDeprecated = manifest.transactionSection;
    manifest.transactionSection = undefined;
    assert.deepEqual(await readTransaction(dataset, { ...file, manifest }), expected);
    manifest.transactionSectionDeprecated = undefined;
    assert.deepEqual(await readTransaction(dataset, { ...file, manifest }), expected);
    dataset.store.objects.set(`base/t/_transactions/${manifest.transactionFile}`, Buffer.from([255]));
    await assert.rejects(readTransaction(dataset, { ...file, manifest }), /\.txn holds no transaction/);
    dataset.store.objects.delete(`base/t/_transactions/${manifest.transactionFile}`);
    await assert.rejects(
      readTransaction(dataset, { ...file, manifest }),
      /^LanceError: \S+ names \S+\.txn, which is missing$/,
    );
    manifest.transactionFile = "";
    assert.equal(await readTransaction(dataset, { ...file, manifest }), undefined);
  });
});
