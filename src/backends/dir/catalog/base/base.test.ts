import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createMemoryStore } from "../../../../../test/fixtures/dir/format.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { RefusedRequest } from "../../format/decisive-request.ts";
import { openStore } from "../../stores/open-store.ts";
import { openBase } from "./base.ts";

const open = (store = createMemoryStore(), root = "root") => ({ store, root, engineOptions: {} });

test("chooses the data directory as base, or the root of an existing catalog", async (t) => {
  const root = await temporaryDirectory(t);
  const local = async (tableDirectory?: string) =>
    (await openBase(await openStore(root, {}), tableDirectory)).key;
  assert.equal(await local(), join(root, "data").slice(1));
  assert.equal(await local("."), root.slice(1));
  await mkdir(join(root, "t.lance"));
  assert.equal(await local(), root.slice(1));
  await assert.rejects(local(".."), /cannot use .* outside of it$/);

  const store = createMemoryStore();
  assert.equal((await openBase(open(store), undefined)).key, "root/data");
  assert.equal((await openBase(open(store, ""), ".")).key, "");
  store.objects.set("root/__manifest/_versions/1.manifest", new Uint8Array());
  assert.equal((await openBase(open(store), undefined)).key, "root");
  await assert.rejects(openBase(open(store), "../x"), /outside of it$/);
});

test("says what is wrong with a root on a disk", async (t) => {
  const file = join(await temporaryDirectory(t), "file");
  await writeFile(file, "");
  const faults = {
    [file]: /: a file is at this path/,
    [join(file, "x")]: /: a file is/,
    "/proc/nope": /: it does not exist/,
  };
  for (const [root, message] of Object.entries(faults))
    await assert.rejects(openBase(await openStore(root, {}), undefined), message);
});

test("stays with the catalog in the data directory when another program has put one into the root", async (t) => {
  const root = await temporaryDirectory(t);
  const local = async () => (await openBase(await openStore(root, {}), undefined)).key;
  await mkdir(join(root, "data", "__manifest"), { recursive: true });
  for (const name of ["t.lance", "__manifest"]) {
    await mkdir(join(root, name));
    assert.equal(await local(), join(root, "data").slice(1));
  }
  const store = createMemoryStore();
  for (const place of ["root/data/__manifest", "root/t.lance", "root/__manifest"])
    store.objects.set(`${place}/_versions/1.manifest`, new Uint8Array());
  assert.equal((await openBase(open(store), undefined)).key, "root/data");
  assert.equal((await openBase(open(store), ".")).key, "root");
});

test("refuses a root that is a table, because a prune of the table would remove the rows of the catalog", async (t) => {
  const root = await temporaryDirectory(t);
  const local = async () => (await openBase(await openStore(root, {}), undefined)).key;
  for (const part of ["_versions", "data"]) await mkdir(join(root, part));
  await assert.rejects(local(), /cannot use .* single table; give the directory that contains it$/);
  assert.deepEqual(await readdir(join(root, "data")), []);
  // A catalog that an earlier release has made there stays within reach.
  await mkdir(join(root, "data", "__manifest"));
  assert.equal(await local(), join(root, "data").slice(1));

  const store = createMemoryStore();
  store.objects.set("root/_versions/1.manifest", new Uint8Array());
  await assert.rejects(openBase(open(store), undefined), /single table/);
  assert.equal(store.objects.size, 1);
  store.objects.set("root/data/__manifest/_versions/1.manifest", new Uint8Array());
  assert.equal((await openBase(open(store), undefined)).key, "root/data");
});

test("refuses a directory for tables that is itself a table, because a catalog would be among its files", async (t) => {
  const root = await temporaryDirectory(t);
  const local = async (tableDirectory?: string) =>
    (await openBase(await openStore(root, {}), tableDirectory)).key;
  await mkdir(join(root, "data", "_versions"), { recursive: true });
  await assert.rejects(local(), /: its directory data is a single table; choose another table directory$/);
  await assert.rejects(local("data"), /its directory data is a single table/);
  assert.deepEqual(await readdir(join(root, "data")), ["_versions"]);
  assert.equal(await local("."), root.slice(1));
  await mkdir(join(root, "_versions"));
  await assert.rejects(local("."), /: it is a single table; give the directory that contains it$/);
  // A catalog that an earlier release has made there stays within reach.
  await mkdir(join(root, "data", "__manifest"));
  assert.equal(await local(), join(root, "data").slice(1));

  const store = createMemoryStore();
  store.objects.set("root/data/_versions/1.manifest", new Uint8Array());
  await assert.rejects(openBase(open(store), undefined), /its directory data is a single table/);
  assert.equal(store.objects.size, 1);
  store.objects.set("root/data/__manifest/_versions/1.manifest", new Uint8Array());
  assert.equal((await openBase(open(store), undefined)).key, "root/data");
});

test("writes to a store only if it refuses to replace objects, and leaves nothing of the trial", async () => {
  const store = createMemoryStore();
  assert.equal((await openBase(open(store), undefined)).readOnly, undefined);
  assert.equal(store.objects.size, 0);
  const careless = {
    ...store,
    putIfAbsent: (key: string, bytes: Uint8Array) => store.put(key, bytes).then(() => true),
  };
  assert.match((await openBase(open(careless), undefined)).readOnly ?? "", /no conditional writes/);
  assert.equal(store.objects.size, 0);
  const denied = { ...store, putIfAbsent: () => Promise.reject(new Error("denied")) };
  assert.match((await openBase(open(denied), undefined)).readOnly ?? "", /refuses/);
});

test("does not take a storage for read-only that is away for a moment", async () => {
  const store = createMemoryStore();
  const openWith = (failure: Error, write = store.put) => {
    const failing = { ...store, putIfAbsent: () => Promise.reject(failure), put: write };
    return openBase(open(failing), undefined);
  };
  for (const kind of ["Throttling", "ServiceUnavailable"] as const) {
    const away = new LanceError(kind, "away");
    await assert.rejects(
      openWith(away, () => Promise.reject(away)),
      /cannot use .*: away$/,
    );
    // A service without conditional writes may answer them as one that fails does.
    assert.match((await openWith(away)).readOnly ?? "", /refuses/);
  }
  const denied = new RefusedRequest("ServiceUnavailable", "denied");
  const unasked = () => Promise.reject(new Error("a write after a denial"));
  assert.match((await openWith(denied, unasked)).readOnly ?? "", /refuses/);
  assert.equal(store.objects.size, 0);
});

test("creates a missing root with its data directory", async (t) => {
  const root = join(await temporaryDirectory(t), "new");
  await openBase(await openStore(root, {}), undefined);
  assert.deepEqual(await readdir(root), ["data"]);
});
