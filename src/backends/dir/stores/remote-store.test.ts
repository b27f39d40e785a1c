import assert from "node:assert/strict";
import { test } from "vitest";
import type { Bucket } from "./bucket.ts";
import { createRemoteStore } from "./remote-store.ts";

test("a key with a segment of dots reaches no service, whose library may fold it into another key", async () => {
  const reached = async () => assert.fail("the service gets the key");
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
