import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, it } from "vitest";
import { listNames } from "../storage.ts";
import { createLocalStore } from "./local-store.ts";

describe("the local store", () => {
  const root = mkdtempSync(join(tmpdir(), "local-store-"));
  const store = createLocalStore(root);
  afterAll(() => rmSync(root, { recursive: true }));

  it("lets exactly one of many writers create a file, whole, and leaves nothing else behind", async () => {
    const writers = Array.from({ length: 40 }, (_, i) => Buffer.alloc(50_000, i));
    const created = await Promise.all(writers.map((bytes) => store.putIfAbsent("race/a/file", bytes)));
    const winner = created.indexOf(true);
    assert.equal(created.filter(Boolean).length, 1);
    assert.deepEqual(await store.get("race/a/file"), writers[winner]);
    assert.deepEqual(readdirSync(join(root, "race", "a")), ["file"]);
  });

  it("lists names at once, without temporary ones, and nothing of a missing directory", async () => {
    await store.put("names/b", Buffer.from("mark"));
    await store.put("names/a/c", Buffer.from("mark"));
    writeFileSync(join(root, "names", "b#123"), "");
    assert.deepEqual([...(store.files.namesNow("names") ?? [])].sort(), ["a", "b"]);
    assert.equal(store.files.namesNow("no-names"), undefined);
  });

  it("writes into a directory that is removed again and again", async () => {
    let over = false;
    let left = 0;
    async function takeAway(): Promise<void> {
      for (; !over; await sleep(2)) {
        if (left-- <= 0) continue;
        // A writer may add a file while its directory is being emptied.
        await rm(join(root, "churn"), { recursive: true, force: true }).catch(() => {});
      }
    }
    const churn = takeAway();
    try {
      for (let i = 0; i < 200; i++) {
        // A write gives up after 30 attempts; on a busy machine an endless removal could interrupt all of them.
        left = 10;
        await store.put("churn/file", Buffer.from("mark"));
        await store.putIfAbsent("churn/other", Buffer.from("mark"));
      }
    } finally {
      over = true;
      await churn;
    }
  });

  it("reads parts", async () => {
    await store.put("parts", Buffer.from("0123456789"));
    assert.deepEqual(await store.getTail("parts", 3), {
      size: 10,
      bytes: new Uint8Array(Buffer.from("789")),
    });
    assert.equal((await store.getTail("parts", 99))?.bytes.byteLength, 10);
    assert.deepEqual(await store.getRange("parts", 2, 4), new Uint8Array(Buffer.from("23")));
    assert.deepEqual(await store.getRange("parts", 8, 40), new Uint8Array(Buffer.from("89")));
  });

  it("describes a file as the engine does", async () => {
    await store.put("info", Buffer.from("abc"));
    const { ino, mtimeNs } = statSync(join(root, "info"), { bigint: true });
    const info = await store.head("info");
    assert.equal(info?.eTag, `"${ino.toString(16)}-${(mtimeNs / 1000n).toString(16)}-3"`);
    assert.equal(info.size, 3);
    assert.ok(Math.abs(info.modifiedMillis - Date.now()) < 60_000);
  });

  it("returns undefined for missing objects", async () => {
    assert.equal(await store.get("no/file"), undefined);
    assert.equal(await store.getTail("no/file", 1), undefined);
    assert.equal(await store.getRange("no/file", 0, 1), undefined);
    assert.equal(await store.head("no/file"), undefined);
    assert.equal(await store.head("race"), undefined);
    assert.equal(await store.get("parts/below-a-file"), undefined);
    assert.deepEqual(await listNames(store, "no/directory"), []);
    assert.equal(await store.delete("no/file"), false);
  });

  it("does not list the remains of a crash", async () => {
    await store.put("left/file", Buffer.from(""));
    writeFileSync(join(root, "left", "file#123"), "");
    assert.deepEqual(await listNames(store, "left"), ["file"]);
    const [temporary, ...others] = await store.files.temporaries("left");
    assert.deepEqual([temporary?.key, temporary?.size, others], ["left/file#123", 0, []]);
    assert.deepEqual(await store.files.temporaries("no/directory"), []);
    assert.equal(await store.delete("left/file#123"), true);
  });

  it("replaces and deletes", async () => {
    await store.put("twice", Buffer.from("one"));
    await store.put("twice", Buffer.from("two"));
    assert.deepEqual(await store.get("twice"), Buffer.from("two"));
    assert.equal(await store.delete("twice"), true);
    assert.equal(await store.get("twice"), undefined);
  });

  it("stays below its root", async () => {
    for (const key of ["../x", "a/../../x", "/etc", "a//b", "./a", "", "a\0"]) {
      assert.throws(() => store.get(key), /no object key/, key);
    }
  });
});
