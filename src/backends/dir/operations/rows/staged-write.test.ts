import assert from "node:assert/strict";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  Dictionary,
  Field,
  Float64,
  Int32,
  RecordBatchStreamWriter,
  Schema,
  Table,
  tableFromIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { expect, test, vi } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { BasePathSchema } from "../../../../gen/lance/format/table_pb.ts";
import { CreateTableMode, InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { manifestKey } from "../../format/dataset.ts";
import { copyMessage } from "../../format/files/manifest.ts";
import { buildManifestFile } from "../../format/files/manifest-file.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { newStagingId } from "../../format/table-files.ts";
import { readTransaction } from "../../format/versions/transaction-records.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { createDirectoryBackend } from "../../index.ts";
import { publishStaged } from "./staged-write.ts";

const SCHEMA = new Schema([new Field("id", new Int32(), true), new Field("name", new Utf8(), true)]);

/** Returns a stream of batches of a hundred rows, counting from `first`. */
function rows(batches: number, first = 0): Uint8Array {
  const writer = new RecordBatchStreamWriter();
  for (let batch = 0; batch < batches; batch++) {
    const ids = Array.from({ length: 100 }, (_, i) => first + batch * 100 + i);
    const names = ids.map((id) => `the name of row ${id}`);
    const columns = { id: vectorFromArray(ids, new Int32()), name: vectorFromArray(names, new Utf8()) };
    for (const part of new Table(SCHEMA, columns).batches) writer.write(part);
  }
  return writer.finish().toUint8Array(true);
}

/** Makes each part about two batches long. */
const options = { uploadPartBytes: 4000 };

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const idsOf = (ipc: Uint8Array) =>
  [...(tableFromIPC(ipc).getChild("id") ?? [])].map(Number).sort((a, b) => a - b);

function datasetAt(root: string, name: string, branch?: string) {
  return { store: createLocalStore(), root: join(root, "data", `${name}.lance`).slice(1), branch };
}

const stagingOf = async (root: string) =>
  (await readdir(join(root, "data"))).filter((name) => name.startsWith(".staging"));

test("a long upload creates, adds to and replaces a table in one version each", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, options);
  const made = await client.upload("createTable", "t", {}, rows(10));
  assert.equal(made.version, 1n);
  const added = await client.upload("insertIntoTable", "t", {}, rows(8, 1000));
  assert.deepEqual([added.version, added.numInsertedRows], [2n, 800n]);
  assert.deepEqual(idsOf(await client.query("t")), upTo(1800));

  const operations = [];
  for (const version of [1n, 2n]) {
    const file = await readVersion(datasetAt(root, "t"), version);
    assert.ok(file.manifest.fragments.length > 2);
    const ids = file.manifest.fragments.map(({ id }) => Number(id));
    assert.deepEqual(ids, upTo(ids.length));
    assert.equal(file.manifest.maxFragmentId, ids.length - 1);
    const transaction = await readTransaction(datasetAt(root, "t"), file);
    operations.push([transaction?.operation, transaction?.readVersion]);
  }
  assert.deepEqual(operations, [
    ["Overwrite", 0n],
    ["Append", 1n],
  ]);

  const replaced = await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows(7));
  assert.equal(replaced.version, 3n);
  assert.deepEqual(idsOf(await client.query("t")), upTo(700));
  const again = await client.upload("createTable", "t", { mode: CreateTableMode.OVERWRITE }, rows(6));
  assert.equal(again.version, 4n);
  assert.equal((await client.call("countTableRows", "t")).count, 600n);
  assert.equal((await client.call("countTableRows", "t", { version: 2n })).count, 1800n);
  // The engine continues from that version.
  assert.equal((await client.upload("insertIntoTable", "t", {}, rows(1, 600))).version, 5n);
  assert.deepEqual(idsOf(await client.query("t")), upTo(700));
  assert.deepEqual(await stagingOf(root), []);
});

test("a declared table and a branch take a long upload", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, options);
  await client.call("declareTable", "d");
  assert.equal((await client.upload("insertIntoTable", "d", {}, rows(9))).version, 1n);
  assert.equal((await client.call("countTableRows", "d")).count, 900n);

  await client.call("createTableBranch", "d", { name: "b" });
  await client.upload("insertIntoTable", "d", { branch: "b" }, rows(9, 900));
  assert.equal((await client.call("countTableRows", "d", { branch: "b" })).count, 1800n);
  assert.equal((await client.call("countTableRows", "d")).count, 900n);
  await client.upload("insertIntoTable", "d", { branch: "b", mode: InsertMode.OVERWRITE }, rows(8));
  assert.equal((await client.call("countTableRows", "d", { branch: "b" })).count, 800n);
  await client.upload("insertIntoTable", "d", { branch: "b" }, rows(1, 900));
  assert.equal((await client.call("countTableRows", "d", { branch: "b" })).count, 900n);
});

test("a long upload that cannot be added leaves nothing behind", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, options);
  await client.upload("createTable", "t", {}, rows(1));
  const names = Array.from({ length: 2000 }, (_, i) => `number ${i}`);
  const other = new RecordBatchStreamWriter();
  other.writeAll(
    [0, 1, 2, 3].flatMap(
      () =>
        new Table({
          id: vectorFromArray(names, new Utf8()),
          x: vectorFromArray(names.map(Number.parseFloat), new Float64()),
        }).batches,
    ),
  );
  await assert.rejects(
    client.upload("insertIntoTable", "t", {}, other.finish().toUint8Array(true)),
    failsWith("TableSchemaValidationError"),
  );
  const cut = rows(10).subarray(0, -5000);
  await assert.rejects(client.upload("insertIntoTable", "t", {}, cut), failsWith("InvalidInput"));
  await assert.rejects(client.upload("createTable", "u", {}, cut), failsWith("InvalidInput"));
  await assert.rejects(client.upload("createTable", "t", {}, rows(10)), failsWith("TableAlreadyExists"));
  assert.equal((await client.call("countTableRows", "t")).count, 100n);
  await assert.rejects(client.call("tableExists", "u"), failsWith("TableNotFound"));
  assert.equal((await readdir(join(root, "data", "t.lance", "data"))).length, 1);
  assert.deepEqual(await stagingOf(root), []);
});

test("concurrent long and short uploads through the backends of two processes all count", async (t) => {
  const root = await temporaryDirectory(t);
  const clients = [await openClient(t, root, options), await openClient(t, root, options)];
  await clients[0]?.upload("createTable", "t", {}, rows(1));
  const added = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      clients[i % 2]?.upload("insertIntoTable", "t", {}, rows(i % 3 === 0 ? 1 : 6, 1000 * (i + 1))),
    ),
  );
  const sum = added.reduce((count, answer) => count + Number(answer?.numInsertedRows), 100);
  const ids = idsOf((await clients[0]?.query("t")) as Buffer);
  assert.equal(ids.length, sum);
  assert.equal(new Set(ids).size, sum);
});

test("dictionaries that change within an upload keep their values", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t), options);
  const type = new Dictionary(new Utf8(), new Int32(), 1);
  const schema = new Schema([new Field("d", type, true)]);
  const writer = new RecordBatchStreamWriter();
  const words = [
    ["a", "b"],
    ["x", "a"],
    ["a", "b"],
  ];
  for (const values of words) {
    for (const part of new Table(schema, { d: vectorFromArray(values, type) }).batches) writer.write(part);
  }
  await client.upload("createTable", "t", {}, writer.finish().toUint8Array(true));
  const found = [...(tableFromIPC(await client.query("t")).getChild("d") ?? [])];
  assert.deepEqual(found, words.flat());
});

test("the leftovers of a process that ended suddenly are removed after a day", async (t) => {
  const root = await temporaryDirectory(t);
  const old = "0".repeat(32);
  const directories = [old, newStagingId(), `upload-${old}`, old.replace(/0$/, "1")];
  const [, young, , used] = directories.map((id) => `.staging-${id}`);
  for (const id of directories) await mkdir(join(root, "data", `.staging-${id}`), { recursive: true });
  await writeFile(join(root, "data", used as string, "part"), "fresh");
  await writeFile(join(root, "data", `.staging-${old}`, "part"), "old");
  for (const name of [`.staging-${old}/part`, `.staging-${old}`, `.staging-upload-${old}`])
    await utimes(join(root, "data", name), 0, 0);
  const backend = await createDirectoryBackend({ root, log: silent });
  t.onTestFinished(() => backend.close());
  assert.deepEqual((await stagingOf(root)).sort(), [used, young]);
});

test("the leftovers of failed removals are removed every hour while the process runs", async (t) => {
  const root = await temporaryDirectory(t);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const backend = await createDirectoryBackend({ root, log: silent });
  t.onTestFinished(() => backend.close());
  const left = join(root, "data", `.staging-${"0".repeat(32)}`);
  await mkdir(left);
  await utimes(left, 0, 0);
  vi.advanceTimersByTime(60 * 60 * 1000);
  await expect.poll(() => stagingOf(root)).toEqual([]);
});

test("the files of a version stay where it names them when the catalog fails in any way", async (t) => {
  const root = await temporaryDirectory(t);
  const files = createLocalStore();
  let isDamaged = false;
  const store: ObjectStore = {
    ...files,
    async putIfAbsent(key, bytes, after) {
      if (isDamaged && key.includes("__manifest/_versions/"))
        throw new LanceError("DataLoss", "the manifest cannot be read");
      return files.putIfAbsent(key, bytes, after);
    },
  };
  const client = await openClient(t, root, { storage: { store, root, engineOptions: {} } });
  await client.upload("createTable", "t", {}, rows(1));
  isDamaged = true;
  const mode = CreateTableMode.OVERWRITE;
  const properties = { owner: "ann" };
  await assert.rejects(
    client.upload("createTable", "t", { mode, properties }, rows(2)),
    failsWith("DataLoss"),
  );
  isDamaged = false;
  // Nobody has decided yet whether the version counts; until then it can be read.
  assert.deepEqual(idsOf(await client.query("t")), upTo(200));
});

test("staged rows do not become a table when their manifest names directories of others", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows(1));
  const staging = datasetAt(root, "t");
  await publishStaged(staging, datasetAt(root, "u"));
  const { manifest, signature } = await readVersion(datasetAt(root, "u"));
  // As a client with write access to the directory can change it.
  const changed = Object.assign(copyMessage(manifest), {
    ...{ version: manifest.version + 1n, transactionFile: "", transactionSection: 0n },
    basePaths: [create(BasePathSchema, { id: 1, path: join(root, "data", "other.lance") })],
  });
  const forged = datasetAt(root, "u");
  const bytes = buildManifestFile(new Uint8Array(), new Uint8Array(), changed, signature);
  await forged.store.put(manifestKey(forged, changed.version, "V2"), bytes);
  await assert.rejects(publishStaged(forged, datasetAt(root, "v")), failsWith("PermissionDenied"));
  assert.deepEqual((await readdir(join(root, "data"))).includes("v.lance"), false);
});
