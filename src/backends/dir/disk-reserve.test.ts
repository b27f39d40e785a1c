import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import { silent, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createDiskReserve, type DiskReserve, RESERVE_DIRECTORY } from "./disk-reserve.ts";
import { createLocalStore } from "./format/local/local-store.ts";

const MIB = 1024 ** 2;
const full = () =>
  new LanceError("ServiceUnavailable", "full", { cause: Object.assign(new Error(), { code: "ENOSPC" }) });

async function open(t: TestContext, refillMs = 60_000) {
  const base = await temporaryDirectory(t);
  const store = createLocalStore();
  const reserve: DiskReserve = createDiskReserve({
    store,
    baseKey: store.keyOf(base),
    log: silent,
    bytes: MIB,
    refillMs,
  });
  t.onTestFinished(() => reserve.close());
  const slices = () => readdir(join(base, RESERVE_DIRECTORY)).catch((): string[] => []);
  while ((await slices()).filter((name) => /^\d$/.test(name)).length < 4) await sleep(2);
  return { base, reserve, slices };
}

test("gives work that frees space as much of the reserve as it needs, and keeps the rest", async (t) => {
  const { base, reserve, slices } = await open(t);
  assert.equal((await stat(join(base, RESERVE_DIRECTORY, "1"))).size, MIB / 4);
  let tries = 0;
  const answer = await reserve.spend(async () => {
    if (++tries < 3) throw full();
    return "dropped";
  });
  assert.deepEqual([answer, (await slices()).length], ["dropped", 2]);
});

test("reports the failure when the reserve is used up, and keeps the reserve on other failures", async (t) => {
  const { reserve, slices } = await open(t);
  await assert.rejects(
    reserve.spend(async () => {
      throw new Error("other");
    }),
    /other/,
  );
  assert.equal((await slices()).length, 4);
  let tries = 0;
  const spent = reserve.spend(async () => {
    tries++;
    throw full();
  });
  await assert.rejects(spent, /full/);
  assert.deepEqual([tries, await slices()], [5, []]);
});

test("refills the reserve when there is space", async (t) => {
  const { reserve, slices } = await open(t, 5);
  let tries = 0;
  await reserve.spend(async () => {
    if (++tries === 1) throw full();
  });
  while ((await slices()).filter((name) => /^\d$/.test(name)).length < 4) await sleep(2);
});
