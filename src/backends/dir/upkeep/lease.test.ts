import assert from "node:assert/strict";
import { describe, type TestContext, test, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../test/support/disk-bucket.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { listNames, type ObjectStore } from "../format/storage.ts";
import type { FencedLease } from "../ownership/fenced-lease.ts";
import { createRemoteStore } from "../stores/remote-store.ts";
import { createUpkeepLeases, UPKEEP_DIRECTORY } from "./lease.ts";

const STORES: Readonly<Record<string, (root: string) => ObjectStore>> = {
  "a disk": createLocalStore,
  "a bucket": (root) => createRemoteStore(createDiskBucket(createLocalStore(root))),
};

describe.each(Object.entries(STORES))("leases on %s", (_, createStore) => {
  /** Opens leases of two processes, whose storage has a clock of its own. */
  async function openLeases(t: TestContext) {
    const store = createStore(await temporaryDirectory(t));
    let ahead = 0;
    const clock = { now: async () => Date.now() + ahead };
    const times = { leaseMs: 60_000, renewMs: 50_000 };
    return {
      store,
      first: createUpkeepLeases("", store, clock, times),
      second: createUpkeepLeases("", store, clock, times),
      pass: (ms: number) => {
        ahead += ms;
      },
    };
  }

  /** Returns the keys of the files of a table's lease. */
  async function filesOf(store: ObjectStore, location: string): Promise<string[]> {
    const directory = `${UPKEEP_DIRECTORY}/${location}`;
    return (await listNames(store, directory)).map((name) => `${directory}/${name}`);
  }

  const taken = (lease: FencedLease | undefined): FencedLease => {
    assert.ok(lease);
    return lease;
  };

  test("tables have leases whatever their locations are, also where the name of a file would be too long", async (t) => {
    const { first, second } = await openLeases(t);
    for (const location of [`${"\u8868".repeat(80)}.lance`, "a/".repeat(200)]) {
      const lease = taken(await first.acquire(location));
      assert.equal(await second.acquire(location), undefined);
      await first.noteOptimized(location, true);
      assert.ok(Number.isFinite(await second.sinceOptimized(location)));
      await lease.release();
      taken(await second.acquire(location));
    }
  });

  test("only one process has the lease of a table, until it gives it back", async (t) => {
    const { first, second } = await openLeases(t);
    const lease = taken(await first.acquire("t.lance"));
    assert.equal(await second.acquire("t.lance"), undefined);
    taken(await second.acquire("other.lance"));
    assert.ok(await lease.isHeld());
    await lease.release();
    const next = taken(await second.acquire("t.lance"));
    assert.ok(next.token > lease.token);
    assert.equal(await first.acquire("t.lance"), undefined);
  });

  test("all processes know how long ago a table was optimized, until that is withdrawn", async (t) => {
    const { first, second, pass } = await openLeases(t);
    assert.equal(await second.sinceOptimized("t.lance"), Number.POSITIVE_INFINITY);
    await first.noteOptimized("t.lance", true);
    assert.ok((await second.sinceOptimized("t.lance")) < 60_000);
    assert.equal(await second.sinceOptimized("other.lance"), Number.POSITIVE_INFINITY);
    pass(600_000);
    assert.ok((await second.sinceOptimized("t.lance")) >= 600_000 - 60_000);
    taken(await second.acquire("t.lance"));
    await second.noteOptimized("t.lance", false);
    assert.equal(await first.sinceOptimized("t.lance"), Number.POSITIVE_INFINITY);
  });

  test("of processes that race for a lease exactly one gets it", async (t) => {
    const { first, second } = await openLeases(t);
    for (let round = 0; round < 20; round++) {
      const leases = await Promise.all([first, second, first, second].map((one) => one.acquire("t.lance")));
      const [winner, ...others] = leases.filter((lease) => lease !== undefined);
      assert.deepEqual(others, []);
      await taken(winner).release();
    }
  });

  test("a process whose listing misses the token of another one gets no lease", async (t) => {
    const { first, second, store } = await openLeases(t);
    await taken(await first.acquire("t.lance")).release();
    const lease = taken(await first.acquire("t.lance"));
    vi.spyOn(store, "list").mockImplementationOnce(async function* () {});
    assert.equal(await second.acquire("t.lance"), undefined);
    assert.ok(await lease.isHeld());
    assert.equal((await filesOf(store, "t.lance")).length, 1);
  });

  test("a lease that is not renewed is taken over with a higher token, and its owner learns of it", async (t) => {
    const { first, second, pass } = await openLeases(t);
    const lost = taken(await first.acquire("t.lance"));
    pass(61_000);
    const next = taken(await second.acquire("t.lance"));
    assert.ok(next.token > lost.token);
    assert.equal(await lost.isHeld(), false);
    assert.ok(await next.isHeld());
    await lost.release();
    assert.ok(await next.isHeld());
  });

  test("a lease from before the clock was set back is taken over once nobody has renewed it for its duration", async (t) => {
    const { first, second, store, pass } = await openLeases(t);
    const lost = taken(await first.acquire("t.lance"));
    const monotonic = performance.now();
    let passed = 0;
    vi.spyOn(performance, "now").mockImplementation(() => monotonic + passed);
    t.onTestFinished(() => void vi.restoreAllMocks());
    pass(-3_600_000);
    assert.equal(await second.acquire("t.lance"), undefined);
    passed += 50_000;
    // A renewal.
    const [key = ""] = await filesOf(store, "t.lance");
    const before = (await store.head(key))?.modifiedMillis;
    // Times of files move on in steps of milliseconds.
    while ((await store.head(key))?.modifiedMillis === before)
      await store.put(key, (await store.get(key)) as Uint8Array);
    assert.equal(await second.acquire("t.lance"), undefined);
    passed += 50_000;
    assert.equal(await second.acquire("t.lance"), undefined);
    passed += 11_000;
    const next = taken(await second.acquire("t.lance"));
    assert.ok(next.token > lost.token);
    assert.equal(await lost.isHeld(), false);
    assert.ok(await next.isHeld());
  });

  test("an optimization from before the clock was set back was not just now", async (t) => {
    const { first, second, pass } = await openLeases(t);
    await first.noteOptimized("t.lance", true);
    pass(-3_600_000);
    assert.equal(await second.sinceOptimized("t.lance"), Number.POSITIVE_INFINITY);
  });
});
