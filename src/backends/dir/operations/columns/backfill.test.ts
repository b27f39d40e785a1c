import assert from "node:assert/strict";
import { tableFromIPC } from "apache-arrow";
import { expect, test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { Job } from "../../jobs/job.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";
import { BACKFILL_COLUMN } from "./backfill.ts";

/** Leaves a job as a process does that was closed while it worked, and returns how the next process ends it. */
async function resumed(t: Parameters<typeof openClient>[0], expression: string) {
  const root = await temporaryDirectory(t);
  const first = await openClient(t, root);
  await first.upload("createTable", "t", {}, rows([1, 2]));
  await first.close();
  const store = createJobStore(createLocalStore(), `${root.slice(1)}/data/${JOBS_DIRECTORY}`);
  const states = ["queued", "running", "queued"] as const;
  const job: Job = {
    ...{ id: "00000000-0000-4000-8000-000000000001", kind: BACKFILL_COLUMN, table: ["t"], state: "queued" },
    spec: { location: "t.lance", column: "id", expression },
    ...{ createdAt: 1, startedAt: 2, attempts: 1, begun: 0 },
    events: states.map((state, at) => ({ at, state, by: "the first" })),
  };
  await store.put(job);
  const client = await openClient(t, root);
  const ended = () => store.get(job.id);
  await expect.poll(async () => (await ended())?.finishedAt).toBeDefined();
  const ids = [...(tableFromIPC(await client.query("t")).getChild("id") ?? [])].map(Number);
  return { state: (await ended())?.state, error: (await ended())?.error?.name, ids: ids.sort() };
}

test("a backfill that may be done is not applied again to its own results", async (t) => {
  const { state, error, ids } = await resumed(t, "Id + 1");
  assert.deepEqual([state, error, ids], ["failed", "OutcomeUnknown", [1, 2]]);
});

test("a backfill from other columns is done again after its process has ended", async (t) => {
  const { state, error, ids } = await resumed(t, "cast(length(name) as int)");
  assert.deepEqual([state, error, ids], ["succeeded", undefined, [5, 5]]);
});
