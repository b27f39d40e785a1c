import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { LanceError } from "../../src/namespace/errors.ts";
import { unbrokenWorkEnded } from "../../src/runtime/threads/unbroken-work.ts";
import { temporaryDirectory } from "../fixtures/dir/directory-backend.ts";
import { gate, jobsOn, request, storeIn } from "../fixtures/dir/jobs.ts";

test("the running job of a worker that leaves stays that of a process that died, with its start counted", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const [refused, refuse] = gate();
  const work = async () => {
    await refused;
    // The engine's next call in a thread that is about to end.
    throw new LanceError("ServiceUnavailable", "the server is shutting down");
  };
  const jobs = jobsOn(t, store, { work });
  const { id } = await jobs.submit(request("work"));
  while ((await jobs.get(id))?.state !== "running") await sleep(5);
  await unbrokenWorkEnded();
  refuse();
  await jobs.close();
  const { state, begun, lease } = (await store.get(id)) ?? {};
  assert.deepEqual([state, begun, lease !== undefined], ["running", 1, true]);
});
