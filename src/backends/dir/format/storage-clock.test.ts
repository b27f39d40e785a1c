import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { createLocalStore } from "./local/local-store.ts";
import type { ObjectStore } from "./storage.ts";
import { createStorageClock } from "./storage-clock.ts";

const DAY = 24 * 60 * 60 * 1000;

/** Wraps a store so that its clock differs from that of the process, and so that it counts its writes. */
function shifted(store: ObjectStore, byMillis: number) {
  const counts = { puts: 0 };
  const result: ObjectStore = {
    ...store,
    async put(key, bytes) {
      counts.puts++;
      await store.put(key, bytes);
    },
    async head(key) {
      const info = await store.head(key);
      return info && { ...info, modifiedMillis: info.modifiedMillis + byMillis };
    },
  };
  return { store: result, counts };
}

test("reads the storage's time from its objects, and is never ahead of them", async (t) => {
  const path = await temporaryDirectory(t);
  for (const days of [-3, 0, 3]) {
    const { store, counts } = shifted(createLocalStore(), days * DAY);
    const clock = createStorageClock(store, path.slice(1));
    const [first, again] = await Promise.all([clock.now(), clock.now()]);
    const object = join(path, "object");
    await writeFile(object, "1");
    const later = (await stat(object)).mtimeMs + days * DAY;
    // The file system records times in ticks of up to 10 ms.
    assert.ok(first <= later + 10 && again <= later + 10, `${first} and ${again} are not after ${later}`);
    assert.ok(first > later - DAY / 24);
    assert.ok((await clock.now()) >= first);
    assert.equal(counts.puts, 1, "callers share a measurement");
  }
  assert.deepEqual(await readdir(path), ["object"]);
});

test("measures the time again when the clock of the process jumps, and does not jump with it", async (t) => {
  const path = await temporaryDirectory(t);
  const { store, counts } = shifted(createLocalStore(), 0);
  const clock = createStorageClock(store, path.slice(1));
  const before = await clock.now();
  const real = Date.now;
  t.onTestFinished(() => void vi.restoreAllMocks());
  for (const [i, days] of [30, -30].entries()) {
    vi.spyOn(Date, "now").mockImplementation(() => real() + days * DAY);
    const now = await clock.now();
    assert.ok(Math.abs(now - before) < DAY / 24, `${now} is near ${before}`);
    assert.equal(counts.puts, i + 2);
  }
});

test("fails on a storage that cannot be written, and asks again at the next call", async (t) => {
  const path = await temporaryDirectory(t);
  const store = createLocalStore();
  let full = true;
  const put: ObjectStore["put"] = (key, bytes) =>
    full ? Promise.reject(new LanceError("ServiceUnavailable", "full")) : store.put(key, bytes);
  const clock = createStorageClock({ ...store, put }, path.slice(1));
  await assert.rejects(clock.now(), (error) => isLanceError(error, "ServiceUnavailable"));
  full = false;
  assert.ok((await clock.now()) > 0);
});
