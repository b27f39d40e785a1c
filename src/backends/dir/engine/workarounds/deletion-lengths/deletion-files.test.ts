import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../../test/fixtures/dir/rows.ts";
import { isLanceError } from "../../../../../namespace/errors.ts";
import { createLocalStore } from "../../../format/local/local-store.ts";
import type { ObjectStore } from "../../../format/storage.ts";
import { checkDeletions, createDeletionFiles } from "./deletion-files.ts";

/** Position of the length of the last batch, counted from the end of a file with one batch. */
const BODY_LENGTH = 26;

/** Creates a table with a deleted row. */
async function openTable(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0, 1, 2, 3]));
  await client.call("deleteFromTable", "t", { predicate: "id = 3" });
  const directory = join(root, "data", "t.lance", "_deletions");
  const path = join(directory, (await readdir(directory))[0] as string);
  return { root, client, path, bytes: await readFile(path) };
}

/** Returns a file of deleted rows that says it had a batch of 128 TiB. */
function oversized(bytes: Buffer): Buffer {
  const damaged = Buffer.from(bytes);
  assert.ok(damaged.readBigInt64LE(damaged.length - BODY_LENGTH) < 1024n);
  damaged.writeUInt8(0x80, damaged.length - BODY_LENGTH + 5);
  return damaged;
}

test("accepts a file of deleted rows, and refuses it with another length or type", async (t) => {
  const { path, bytes } = await openTable(t);
  await checkDeletions(path, bytes);
  await checkDeletions("0-1-2.bin", Buffer.from("3a300000010000000000000010000000" + "0300", "hex"));
  let refused = 0;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8(damaged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    await checkDeletions(path, damaged).catch((error: unknown) => {
      assert.ok(isLanceError(error, "DataLoss"), `bit ${bit}: ${error}`);
      refused++;
    });
  }
  // Padding, names and the numbers themselves have no checksum.
  assert.ok(refused > bytes.length, `${refused} of ${bytes.length * 8}`);
  await assert.rejects(checkDeletions("0-1-2.bin", bytes), failsWith("DataLoss"));
  await assert.rejects(checkDeletions(path, oversized(bytes)), failsWith("DataLoss"));
});

test("a damaged file of deleted rows costs its versions alone, until it is replaced", async (t) => {
  const { root, client: before, path, bytes } = await openTable(t);
  await before.call("createTableBranch", "t", { name: "b" });
  await before.upload("createTable", "other", {}, rows([7]));
  await before.close();
  await writeFile(path, oversized(bytes));
  const client = await openClient(t, root);
  await assert.rejects(client.query("t", { k: 9n }), failsWith("DataLoss"));
  await assert.rejects(client.query("t", { k: 9n, branch: "b" }), failsWith("DataLoss"));
  await assert.rejects(client.query("t", { k: 9n, version: 2n }), failsWith("DataLoss"));
  assert.deepEqual(idsOf(await client.query("t", { k: 9n, version: 1n })), [0, 1, 2, 3]);
  assert.deepEqual(idsOf(await client.query("other", { k: 9n })), [7]);
  await client.call("restoreTable", "t", { version: 1n });
  assert.deepEqual(idsOf(await client.query("t", { k: 9n })), [0, 1, 2, 3]);
  await writeFile(path, bytes);
  assert.deepEqual(idsOf(await client.query("t", { k: 9n, version: 2n })), [0, 1, 2]);
});

test("a file of deleted rows that another program damages and publishes is refused by an open table", async (t) => {
  const { root, client, path, bytes } = await openTable(t);
  const [other] = [await openClient(t, root)];
  assert.deepEqual(idsOf(await client.query("t", { k: 9n })), [0, 1, 2]);
  await other.call("deleteFromTable", "t", { predicate: "id = 2" });
  const names = (await readdir(join(path, ".."))).map((name) => join(path, "..", name));
  const added = names.find((name) => name !== path) as string;
  const whole = await readFile(added);
  await writeFile(added, oversized(whole));
  await assert.rejects(client.query("t", { k: 9n }), failsWith("DataLoss"));
  await writeFile(added, whole);
  assert.deepEqual(idsOf(await client.query("t", { k: 9n })), [0, 1]);
  await writeFile(path, bytes);
});

test("only the files of versions that are read are read, each once", async (t) => {
  const { root, client } = await openTable(t);
  for (const id of [0, 1]) await client.call("deleteFromTable", "t", { predicate: `id = ${id}` });
  const local = createLocalStore();
  const keys: string[] = [];
  const store: ObjectStore = {
    ...local,
    get: (key) => {
      keys.push(key);
      return local.get(key);
    },
  };
  const files = createDeletionFiles({ store, root: store.keyOf(join(root, "data", "t.lance")) });
  const count = () => keys.filter((key) => key.includes("_deletions")).length;
  for (const _ of [1, 2]) await files.look();
  assert.equal(count(), 1);
  for (const _ of [1, 2]) await files.refuseDamaged();
  assert.equal(count(), 1);
  for (const version of [1n, 2n, 2n]) await files.refuseDamaged(version);
  assert.equal(count(), 2);
});

test("the engine alone still ends its process at such a file; without that, this folder can go", async (t) => {
  const { root, client, path, bytes } = await openTable(t);
  await client.close();
  await writeFile(path, oversized(bytes));
  const program = `
    const { connect } = await import("@lancedb/lancedb");
    const table = await (await connect(${JSON.stringify(join(root, "data"))})).openTable("t");
    await table.query().toArray().catch(() => process.exit(3));`;
  const { signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  assert.equal(signal, "SIGABRT", stderr);
  assert.match(stderr, /memory allocation of \d{15} bytes failed/);
});
