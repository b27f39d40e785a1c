import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { DriverRewriteSchema } from "../../../../gen/lance/gateway/v1/driver_pb.ts";
import { createVersion } from "../../format/changes/staged-version.ts";
import { encodeIndices, readSegments } from "../../format/files/index-section.ts";
import { copyMessage } from "../../format/files/manifest.ts";
import { buildManifestFile, manifestFileOf } from "../../format/files/manifest-file.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { openDirectory } from "../../open-directory.ts";
import { optimizeTable } from "../../upkeep/optimize.ts";
import { requireTable } from "../tables/find-table.ts";
import { carryDeletions } from "./carried-deletions.ts";

/** The id of the new fragment, which is larger than those of others. */
const ADDED = 100n;

/** Makes a table of three fragments with a deleted row, and joins them in a copy. */
async function openJoined(t: TestContext, rowsOfPart = 4) {
  const [root, copy] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  const client = await openClient(t, root);
  const parts = [0, 1, 2].map((part) =>
    Array.from({ length: rowsOfPart }, (_, at) => part * rowsOfPart + at),
  );
  for (const [at, part] of parts.entries())
    await client.upload(at === 0 ? "createTable" : "insertIntoTable", "t", {}, rows(part));
  await client.call("deleteFromTable", "t", { predicate: "id = 1" });
  await cp(root, copy, { recursive: true });
  const store = createLocalStore();
  const place = (directory: string) => ({ store, root: store.keyOf(`${directory}/data/t.lance`) });
  const [dataset, aside] = [place(root), place(copy)];
  const base = await readVersion(dataset);
  const { context, close } = await openDirectory({ root: copy, log: silent });
  const table = await requireTable(context, { id: ["t"] });
  await optimizeTable(context, table, "join", new AbortController().signal);
  await close();
  await cp(`${copy}/data/t.lance/data`, `${root}/data/t.lance/data`, { recursive: true });
  const joined = await readVersion(aside);

  /** Stages the joined fragment in place of the former ones as the next version. */
  async function stage(transactionFile = "") {
    const [before, transaction] = [await readVersion(dataset), await readTransactionMessage(aside, joined)];
    assert.ok(transaction?.operation.case === "rewrite");
    const { groups } = transaction.operation.value;
    const old = new Set(groups.flatMap(({ oldFragments }) => oldFragments.map(({ id }) => id)));
    const present = new Set(before.manifest.fragments.map(({ id }) => id));
    const own = copyMessage(transaction);
    assert.ok(own.operation.case === "rewrite");
    for (const group of own.operation.value.groups) {
      group.oldFragments = group.oldFragments.filter(({ id }) => present.has(id));
      for (const fragment of group.newFragments) fragment.id = ADDED;
    }
    const made = own.operation.value.groups.flatMap(({ newFragments }) => newFragments);
    const manifest = Object.assign(copyMessage(before.manifest), {
      ...{
        version: before.manifest.version + 1n,
        maxFragmentId: Number(ADDED),
        transactionSection: 0n,
        transactionFile,
      },
      fragments: [...made.map(copyMessage), ...before.manifest.fragments.filter(({ id }) => !old.has(id))],
    });
    const bytes = buildManifestFile(
      new Uint8Array(),
      toBinary(TransactionSchema, own),
      manifest,
      before.signature,
    );
    const next = manifestFileOf(`${dataset.root}/_versions/staged`, bytes, manifest);
    const rewrite = create(DriverRewriteSchema, {
      readVersion: base.manifest.version,
      groups: groups.map(({ oldFragments }) => ({ fragmentIds: oldFragments.map(({ id }) => id) })),
    });
    return { before, next, transaction: own, rewrite };
  }
  const ids = async () => idsOf(await client.query("t", { k: 100_000n })).sort((a, b) => a - b);
  return { client, dataset, stage, ids, all: parts.flat() };
}

const NAME = { column: "name", expression: "'changed'" };

test("the rows that others delete and update while fragments are joined are deleted in the new one", async (t) => {
  const { client, dataset, stage, ids, all } = await openJoined(t);
  await client.call("deleteFromTable", "t", { predicate: "id = 6" });
  await client.call("updateTable", "t", { predicate: "id IN (0, 7)", updates: [NAME] });
  // A fragment that loses all of its rows is gone.
  await client.call("deleteFromTable", "t", { predicate: "id >= 8" });
  const staged = await stage();
  const carried = await carryDeletions(dataset, staged);
  assert.ok(carried);
  await carried.write();
  const { version } = staged.next.manifest;
  await createVersion(dataset, { version, stagedKey: carried.file.key });
  assert.deepEqual(
    await ids(),
    all.filter((id) => id !== 1 && id !== 6 && id < 8),
  );
  const { manifest } = await readVersion(dataset);
  const { physicalRows, deletionFile } = manifest.fragments.find(({ id }) => id === ADDED) ?? {};
  assert.deepEqual([physicalRows, deletionFile?.numDeletedRows], [11n, 7n]);
  const changed = await client.query("t", { k: 10n, filter: "name = 'changed'" });
  assert.deepEqual(idsOf(changed).sort(), [0, 7]);
});

test("many deleted rows, which the engine lists in a bitmap, are carried over", async (t) => {
  const { client, dataset, stage, ids, all } = await openJoined(t, 20_000);
  await client.call("deleteFromTable", "t", { predicate: "id % 2 = 0" });
  const staged = await stage();
  const carried = await carryDeletions(dataset, staged);
  await carried?.write();
  await createVersion(dataset, { version: staged.next.manifest.version, stagedKey: carried?.file.key ?? "" });
  assert.deepEqual(
    await ids(),
    all.filter((id) => id % 2 === 1 && id !== 1),
  );
});

test("a new fragment of which no row is left is left out", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.call("updateTable", "t", { predicate: "id < 11", updates: [NAME] });
  await client.call("deleteFromTable", "t", { predicate: "id = 11" });
  const carried = await carryDeletions(dataset, await stage());
  assert.deepEqual(
    carried?.file.manifest.fragments.map(({ id }) => id === ADDED),
    [false],
  );
  assert.equal(
    carried?.file.manifest.fragments.some(({ deletionFile }) => deletionFile !== undefined),
    false,
  );
});

test("a rewrite that nobody has overtaken stays as it is", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.upload("insertIntoTable", "t", {}, rows([20]));
  assert.equal(await carryDeletions(dataset, await stage()), undefined);
});

test("refuses a rewrite of fragments that others have changed otherwise, or of other fragments than it names", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  const { rewrite, ...staged } = await stage();
  const { readVersion: read, groups } = rewrite;
  const refused = (changed: MessageInitShape<typeof DriverRewriteSchema>) =>
    assert.rejects(
      carryDeletions(dataset, { ...staged, rewrite: create(DriverRewriteSchema, changed) }),
      failsWith("InvalidInput"),
    );
  await refused({ readVersion: 99n, groups });
  await refused({ readVersion: read, groups: [] });
  await refused({ readVersion: read - 1n, groups });
  await refused({
    readVersion: read,
    groups: groups.map(({ fragmentIds }) => ({ fragmentIds: fragmentIds.slice(1) })),
  });
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "two", expression: "id * 2" }] });
  await assert.rejects(carryDeletions(dataset, await stage()), failsWith("InvalidInput"));
});

test("refuses a rewrite of fragments on which an index was built meanwhile", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE" });
  const { before, ...staged } = await stage();
  await assert.rejects(carryDeletions(dataset, { before, ...staged }), failsWith("InvalidInput"));
});

test("calls that are repeated at the same time leave the files of the one that is published", async (t) => {
  const { client, dataset, stage, ids, all } = await openJoined(t);
  await client.call("deleteFromTable", "t", { predicate: "id = 6" });
  const { next, ...staged } = await stage();
  const [first, second] = await Promise.all([1, 2].map(() => carryDeletions(dataset, { next, ...staged })));
  await first?.write();
  await second?.write();
  await createVersion(dataset, { version: next.manifest.version, stagedKey: first?.file.key ?? "" });
  await second?.discard();
  assert.deepEqual(
    await ids(),
    all.filter((id) => id !== 1 && id !== 6),
  );
});

test("a record of the transaction gets a name of its own, and not the one that a driver gives", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.call("deleteFromTable", "t", { predicate: "id = 6" });
  const { transaction, ...staged } = await stage("../../other.lance/victim.txn");
  const carried = await carryDeletions(dataset, { transaction, ...staged });
  await carried?.write();
  const name = carried?.file.manifest.transactionFile ?? "";
  assert.match(name, /^\d+-[\da-f-]+\.txn$/);
  assert.ok(name.endsWith(`-${transaction.uuid}.txn`));
  assert.ok(await dataset.store.head(`${dataset.root}/_transactions/${name}`));
  transaction.uuid = "../../../victim";
  await assert.rejects(carryDeletions(dataset, { transaction, ...staged }), failsWith("InvalidInput"));
});

test("refuses a rewrite of a former table, whose versions and fragments have the same numbers", async (t) => {
  const { dataset, stage } = await openJoined(t);
  const { transaction, ...staged } = await stage();
  assert.ok(transaction.operation.case === "rewrite");
  const file = transaction.operation.value.groups[0]?.oldFragments[1]?.files[0];
  assert.ok(file);
  file.path = "of-another-table.lance";
  await assert.rejects(carryDeletions(dataset, { transaction, ...staged }), failsWith("InvalidInput"));
});

test("refuses a rewrite after others have built an index that does not say which fragments it covers", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE" });
  const { before, ...staged } = await stage();
  const [segment] = await readSegments(before);
  assert.ok(segment);
  segment.fragmentBitmap = new Uint8Array();
  const manifest = Object.assign(copyMessage(before.manifest), { indexSection: 0n });
  const bytes = buildManifestFile(encodeIndices([segment]), new Uint8Array(), manifest, before.signature);
  const indexed = manifestFileOf(before.key, bytes, manifest);
  await assert.rejects(carryDeletions(dataset, { before: indexed, ...staged }), failsWith("InvalidInput"));
});

test("refuses a rewrite of fragments whose deleted rows are listed in the directory of another table", async (t) => {
  const { client, dataset, stage } = await openJoined(t);
  await client.call("deleteFromTable", "t", { predicate: "id = 6" });
  const { before, ...staged } = await stage();
  const { deletionFile } = before.manifest.fragments.find((each) => each.deletionFile) ?? {};
  assert.ok(deletionFile);
  const base = { no: 7, wireType: WireType.Varint, data: Uint8Array.of(1) };
  deletionFile.$unknown = [base];
  await assert.rejects(carryDeletions(dataset, { before, ...staged }), failsWith("InvalidInput"));
});
