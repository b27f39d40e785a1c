import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  ended,
  leaveIntent,
  leaveMark,
  leaveVerdict,
  type StagedNext,
  stageNext,
} from "../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { type DatasetRef, manifestKey } from "../format/dataset.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import { identifyProcess } from "../ownership/owner.ts";
import { digestOf } from "./intent.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
const store = createLocalStore();

async function tables(t: TestContext, ...names: string[]) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const name of names) await client.upload("createTable", name, {}, rows);
  const datasets = names.map((name) => ({ store, root: join(root, "data", `${name}.lance`).slice(1) }));
  return { root, client, datasets };
}
const newest = async (dataset: DatasetRef) => (await latestVersion(dataset))?.version;
const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const intended = (dataset: DatasetRef, { version, key, manifestPath, bytes }: StagedNext) => ({
  dataset: { root: dataset.root, branch: null },
  version: String(version),
  key,
  stagedKey: manifestPath,
  digest: digestOf(bytes),
  exists: false,
});

const NOTHING = { versions: [], deletions: [], locations: [], declared: [], departures: [] };

test("a batch that was cut off between two versions is taken back at the next start", async (t) => {
  const { root, client, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  const [ofA, ofB] = [await stageNext(a, "x"), await stageNext(b, "x")];
  await store.putIfAbsent(ofA.key, ofA.bytes);
  await store.delete(ofA.manifestPath);
  const path = await leaveIntent(root, { versions: [intended(a, ofA), intended(b, ofB)] });
  await client.close();
  const next = await openClient(t, root);
  assert.deepEqual([await newest(a), await newest(b), await exists(path)], [1n, 1n, false]);
  // The staged manifests are back, so that the client can repeat its call.
  const { versions } = await next.call("batchCreateTableVersions", "$", {
    entries: [
      { id: ["a"], version: 2n, manifestPath: ofA.manifestPath },
      { id: ["b"], version: 2n, manifestPath: ofB.manifestPath },
    ],
  });
  assert.deepEqual(
    versions.map(({ version }) => version),
    [2n, 2n],
  );
});

test("a batch that was cut off after its commit is completed", async (t) => {
  const { root, client, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  const ofA = await stageNext(a, "x");
  await store.putIfAbsent(ofA.key, ofA.bytes);
  const ranges = [{ start: "0", end: "2" }];
  const last = { "1": digestOf((await store.get(manifestKey(b, 1n, "V2"))) as Uint8Array) };
  await leaveIntent(root, {
    versions: [intended(a, ofA)],
    deletions: [{ dataset: { root: b.root, branch: null }, ranges, last }],
  });
  await leaveVerdict(root, "committed");
  // The next batch resolves it, even a batch that fails.
  await assert.rejects(
    client.call("batchCommitTables", "$", { operations: [{}] }),
    failsWith("InvalidInput"),
  );
  const declare = { case: "declareTable" as const, value: { id: ["c"] } };
  await client.call("batchCommitTables", "$", { operations: [{ operation: declare }] });
  assert.deepEqual([await newest(a), await newest(b)], [2n, undefined]);
  assert.equal(await exists(`/${ofA.manifestPath}`), false);
  assert.deepEqual(await readdir(join(root, "data", ".intents")), []);
});

test("the verdict in the manifest decides, and goes with the note", async (t) => {
  const { root, client, datasets } = await tables(t, "a");
  const [a] = datasets as [DatasetRef];
  for (const verdict of ["refused", undefined, "committed"] as const) {
    const staged = await stageNext(a, `x${verdict}`);
    await store.putIfAbsent(staged.key, staged.bytes);
    const path = await leaveIntent(root, { versions: [intended(a, staged)] });
    if (verdict !== undefined) await leaveVerdict(root, verdict);
    const next = await openClient(t, root);
    assert.equal(await newest(a), verdict === "committed" ? 2n : 1n);
    assert.equal(await exists(path), false);
    await next.call("declareTable", `t${verdict}`);
    await next.close();
  }
  const { context, close } = await openDirectory({ root, log: silent });
  assert.equal((await context.catalog.read()).verdicts.size, 0);
  await close();
  assert.equal((await client.call("listTables", "")).tables.length, 4);
});

test("a version that others have built on stays", async (t) => {
  const { root, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  const [ofA, ofB] = [await stageNext(a, "x"), await stageNext(b, "x")];
  await store.putIfAbsent(ofA.key, ofA.bytes);
  const after = await stageNext(a, "y");
  await store.putIfAbsent(after.key, after.bytes);
  const path = await leaveIntent(root, { versions: [intended(a, ofA), intended(b, ofB)] });
  await openClient(t, root);
  assert.deepEqual([await newest(a), await exists(`/${ofA.key}`), await exists(path)], [3n, true, false]);
});

test("leaves the change of a living process alone, unless another process has its number by now", async (t) => {
  const { root, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  const [ofA, ofB] = [await stageNext(a, "x"), await stageNext(b, "x")];
  await store.putIfAbsent(ofA.key, ofA.bytes);
  const versions = [intended(a, ofA), intended(b, ofB)];
  for (const kernel of [ended.kernel, "another machine", null]) {
    const path = await leaveIntent(root, { versions }, { ...identifyProcess(), kernel });
    await (await openClient(t, root)).close();
    assert.deepEqual([await newest(a), await exists(path)], [2n, true]);
  }
  const path = await leaveIntent(root, { versions }, { ...identifyProcess(), started: "1" });
  await openClient(t, root);
  assert.deepEqual([await newest(a), await exists(path)], [1n, false]);
});

test("a change that cannot be resolved does not keep others from being resolved", async (t) => {
  const { root, datasets } = await tables(t, "a");
  const [a] = datasets as [DatasetRef];
  const staged = await stageNext(a, "x");
  await store.putIfAbsent(staged.key, staged.bytes);
  const path = await leaveIntent(root, { versions: [intended(a, staged)] });
  // A directory in place of the manifest cannot be read. Notes are resolved in any order.
  const unreadable = { ...intended(a, staged), key: a.root };
  const text = JSON.stringify({ owner: ended, intent: { ...NOTHING, versions: [unreadable] } });
  const others = ["a", "z"].map((name) => join(root, "data", ".intents", `${name}.json`));
  for (const other of others) await writeFile(other, text);
  await openClient(t, root);
  assert.deepEqual([await newest(a), await exists(path)], [1n, false]);
  assert.deepEqual(await Promise.all(others.map(exists)), [true, true]);
});

test("a rename that was cut off gets its marker, and nobody sees the old name", async (t) => {
  const { root, client } = await tables(t, "a");
  const marker = join(root, "data", "a.lance", ".lance-deregistered");
  await client.call("renameTable", "a", { newTableName: "b" });
  assert.equal(await exists(marker), true);
  await client.call("renameTable", "b", { newTableName: "a" });
  assert.equal(await exists(marker), false);
  await writeFile(marker, "reserved");
  await leaveIntent(root, { locations: ["a.lance"] });
  await leaveVerdict(root, "committed");
  await openClient(t, root);
  assert.equal(await exists(marker), false);
});

test("a declaration of a batch that is completed late leaves the mark of a drop of its table", async (t) => {
  const { root, client } = await tables(t);
  await client.call("declareTable", "a");
  await leaveMark(root, "a.lance", "drop");
  await leaveIntent(root, { declared: ["a.lance"] });
  await leaveVerdict(root, "committed");
  await openClient(t, root);
  assert.ok(await exists(join(root, "data", "a.lance", ".lance-deregistered")));
});

test("the directory of a drop that an older release marked stays hidden, and its name can be used", async (t) => {
  const { root, client } = await tables(t, "a");
  const directory = join(root, "data", "a.lance");
  // As with an older release that ends after its commit: its mark does not say which change removes the directory.
  await client.call("deregisterTable", "a");
  await writeFile(join(directory, ".lance-deregistered"), "reserved");
  const path = await leaveIntent(root, { departures: [{ location: "a.lance", remove: true }] });
  await leaveVerdict(root, "committed");
  const next = await openClient(t, root);
  assert.equal(await exists(path), false);
  assert.deepEqual((await next.call("listTables", "$")).tables, []);
  assert.ok((await readdir(directory)).includes("_versions"));
  await next.upload("createTable", "a", {}, rows);
  assert.equal((await next.call("countTableRows", "a")).count, 1n);
});

test("a version that another writer takes first undoes the versions before it", async (t) => {
  const { client, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  const outcomes: PromiseSettledResult<unknown>[] = [];
  // A rival commits to one of the tables at any moment of the batch.
  for (let i = 0; i < 15; i++) {
    const [ofA, ofB, rival] = [
      await stageNext(a, `a${i}`),
      await stageNext(b, `b${i}`),
      await stageNext(b, `r${i}`),
    ];
    const entries = [
      { id: ["a"], version: ofA.version, manifestPath: ofA.manifestPath },
      { id: ["b"], version: ofB.version, manifestPath: ofB.manifestPath },
    ];
    const before = await newest(a);
    const [batch] = await Promise.allSettled([
      client.call("batchCreateTableVersions", "$", { entries }),
      new Promise((resolve) => setTimeout(resolve, i / 4)).then(() =>
        store.putIfAbsent(rival.key, rival.bytes),
      ),
    ]);
    outcomes.push(batch);
    if (batch.status === "rejected")
      assert.ok(failsWith("ConcurrentModification")(batch.reason), String(batch.reason));
    const landed = batch.status === "fulfilled";
    assert.equal(await newest(a), (before as bigint) + (landed ? 1n : 0n));
    assert.equal(
      Buffer.compare((await store.get(ofB.key)) as Uint8Array, landed ? ofB.bytes : rival.bytes),
      0,
    );
  }
});

test("killed at any moment, batches are there as a whole or not at all", async (t) => {
  const { root, client, datasets } = await tables(t, "a", "b");
  const [a, b] = datasets as [DatasetRef, DatasetRef];
  await client.close();
  const script = `
    import { createDirectoryBackend } from ${JSON.stringify(import.meta.resolve("../index.ts"))};
    import { createLocalStore } from ${JSON.stringify(import.meta.resolve("../format/local/local-store.ts"))};
    import { stageNext } from ${JSON.stringify(import.meta.resolve("../../../../test/fixtures/dir/batch.ts"))};
    import { silent } from ${JSON.stringify(import.meta.resolve("../../../../test/fixtures/dir/directory-backend.ts"))};
    const [root, ...roots] = process.argv.slice(1);
    const store = createLocalStore();
    const { operations } = await createDirectoryBackend({ root, log: silent });
    const call = { id: [], signal: new AbortController().signal };
    for (let i = 0; ; i++) {
      const staged = await Promise.all(roots.map((root) => stageNext({ store, root }, process.pid + "-" + i)));
      const entries = staged.map(({ version, manifestPath }, n) => ({
        ...{ id: ["ab"[n]], version, manifestPath },
        metadata: {},
      }));
      await operations.batchCreateTableVersions({ entries }, call);
      process.stdout.write(".");
    }
  `;
  for (let kill = 0; kill < 4; kill++) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, root, a.root, b.root], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exit = once(child, "exit");
    const isRunning = await Promise.race([
      once(child.stdout, "data").then(() => true),
      exit.then(() => false),
    ]);
    assert.ok(isRunning, "the process has failed");
    await new Promise((resolve) => setTimeout(resolve, 20 + kill * 17.3));
    child.kill("SIGKILL");
    await exit;
    const next: TestClient = await openClient(t, root);
    await next.close();
    assert.equal(await newest(a), await newest(b));
    const left = await readdir(join(root, "data", ".intents"));
    assert.deepEqual(
      left.filter((name) => name.endsWith(".json")),
      [],
    );
  }
  assert.ok(((await newest(a)) as bigint) > 4n);
});
