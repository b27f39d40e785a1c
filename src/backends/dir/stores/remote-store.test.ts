import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test, vi } from "vitest";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import { inFastTime } from "../../../../test/support/fast-time.ts";
import type { ObjectStore } from "../format/storage.ts";
import type { Bucket } from "./bucket.ts";
import { createRemoteStore } from "./remote-store.ts";

test("a key with a segment of dots reaches no service, whose library may fold it into another key", async () => {
  const reached = async (key: string) =>
    key === "own/x" ? { size: 1 } : assert.fail("the service gets the key");
  const bucket = { scheme: "az", name: "c", listsInOrder: true } as unknown as Bucket;
  for (const name of [
    "get",
    "getTagged",
    "replace",
    "deleteTagged",
    "getStream",
    "getPart",
    "head",
    "put",
    "putStream",
    "create",
    "copy",
    "delete",
  ])
    Object.assign(bucket, { [name]: reached });
  const store = createRemoteStore(bucket);
  const bytes = Uint8Array.of(1);
  for (const key of ["own/data/../../other/data/x", "own/./x", "../x", "own/.."]) {
    for (const attempt of [
      () => store.get(key),
      () => store.getTagged(key),
      () => store.replace(key, bytes, "tag"),
      () => store.deleteTagged(key, "tag"),
      () => store.getStream(key),
      () => store.getTail(key, 1),
      () => store.getRange(key, 0, 1),
      () => store.head(key),
      () => store.create(key, bytes),
      () => store.put(key, bytes),
      () => store.putIfAbsent(key, bytes),
      () => store.delete(key),
      () => store.deleteAll([key]),
      () => store.copy(key, "own/x"),
      () => store.move("own/x", key),
    ])
      await assert.rejects(attempt(), /is no object key/, `${key} ${attempt}`);
  }
});

test("an object that a service does not copy in a single request is moved in parts", async () => {
  const done: string[] = [];
  const bucket = {
    head: async () => ({ size: 5e9 }),
    copy: async () => assert.fail("the service refuses the request"),
    getStream: async () => Readable.from(["bytes"]),
    putStream: async (key: string) => void done.push(`put ${key}`),
    delete: async ([key]: readonly string[]) => void done.push(`delete ${key}`),
  } as unknown as Bucket;
  await createRemoteStore(bucket).move("from", "to");
  assert.deepEqual(done, ["put to", "delete from"]);
});

test("an object that is missing is not moved", async () => {
  const bucket = { head: async () => undefined } as unknown as Bucket;
  await assert.rejects(createRemoteStore(bucket).move("from", "to"), failsWith("DataLoss"));
});

/** Opens a store whose listings have pages with these tokens, in order, and no objects. */
function openPages(tokenOf: (page: number) => string | undefined) {
  let pages = 0;
  const page = async () => ({ objects: [], prefixes: [], next: tokenOf(++pages) });
  const bucket = { scheme: "s3", name: "b", listsInOrder: true, page } as unknown as Bucket;
  return { store: createRemoteStore(bucket), pages: () => pages };
}

const ENDLESS: Readonly<Record<string, (page: number) => string>> = {
  "begins again": () => "same",
  "goes round": (page) => `token ${page % 3}`,
  "never ends and never has an object": (page) => `token ${page}`,
};

for (const [how, tokenOf] of Object.entries(ENDLESS))
  test(`a listing that ${how} fails`, async () => {
    const listings = [
      (store: ObjectStore) => Array.fromAsync(store.list("d")),
      (store: ObjectStore) => store.exists("d"),
      (store: ObjectStore) => store.deleteDirectory("d"),
    ];
    for (const listing of listings)
      await assert.rejects(listing(openPages(tokenOf).store), failsWith("ServiceUnavailable"));
  });

test("a listing whose pages without objects take minutes fails", async (t) => {
  vi.useFakeTimers({ toFake: ["performance"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const { store, pages } = openPages((page) => {
    vi.advanceTimersByTime(10_000);
    return `token ${page}`;
  });
  await assert.rejects(store.exists("d"), failsWith("ServiceUnavailable"));
  assert.equal(pages(), 31);
});

test("a listing may have pages without objects, as services send them after many deletes", async () => {
  const { store, pages } = openPages((page) => (page === 500 ? undefined : `token ${page}`));
  assert.equal(await store.exists("d"), false);
  assert.equal(pages(), 500);
});

test("reads of a storage that answers nothing are made once more only within the budget", async () => {
  let asked = 0;
  const get = async () => {
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    throw new Error("late");
  };
  await inFastTime(async () => {
    const store = createRemoteStore({ scheme: "s3", name: "b", get } as unknown as Bucket);
    const reads = Array.from({ length: 100 }, (_, index) => store.get(`k${index}`));
    for (const { status } of await Promise.allSettled(reads)) assert.equal(status, "rejected");
  });
  assert.ok(asked > 100 && asked < 130, String(asked));
});
