import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { test } from "vitest";
import { failsWith, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { clock, ended, jobsOn, request, storeIn } from "../../../../test/fixtures/dir/jobs.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { Job } from "./job.ts";
import { createJobs } from "./jobs.ts";
import { createJobStore, JOBS_DIRECTORY } from "./store.ts";

test("a damaged record is reported by its name", async (t) => {
  const path = await temporaryDirectory(t);
  const [store, id] = [storeIn(path), randomUUID()];
  for (const text of ["", "{", "null", "{}", `{"id":"${id}"}`, `{"id":"${id}","spec":null}`]) {
    await createLocalStore(path).put(`${JOBS_DIRECTORY}/done/${id}.json`, Buffer.from(text));
    const isNamed = (e: Error) => failsWith("DataLoss")(e) && e.message.startsWith(`${id}.json `);
    await assert.rejects(store.get(id), isNamed, text);
  }
});

test("a damaged record of one job leaves the others in the list, and the log names it once", async (t) => {
  const path = await temporaryDirectory(t);
  const store = storeIn(path);
  const logged: { job?: string }[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const jobs = createJobs({ store, clock, log });
  const facts = { ...request("quick"), createdAt: 1, attempts: 1 };
  const [done, open] = [randomUUID(), randomUUID()];
  await store.finish({ ...facts, id: done, state: "succeeded", finishedAt: 2 });
  await store.put({ ...facts, id: open, state: "queued", createdAt: 3 });
  const damaged: string[] = [];
  for (const folder of ["open", "done"]) {
    for (const content of [
      {},
      { ...facts, spec: null },
      { ...facts, table: "t" },
      { ...facts, createdAt: "" },
      // No answer can have such a time, and the end of such a job would never have removed all claims.
      { ...facts, createdAt: 0.5 },
      { ...facts, createdAt: 1e300 },
      { ...facts, finishedAt: "now" },
      { ...facts, attempts: 1e15 },
      { ...facts, state: "DONE" },
      { ...facts, events: 5 },
      { ...facts, events: [null] },
      { ...facts, error: null },
      { ...facts, error: { name: "Internal", message: 5 } },
      { ...facts, lease: null },
    ]) {
      const id = randomUUID();
      const record = Buffer.from(JSON.stringify({ state: "queued", ...content, id }));
      await createLocalStore(path).put(`${JOBS_DIRECTORY}/${folder}/${id}.json`, record);
      damaged.push(id);
    }
  }
  for (let times = 0; times < 2; times++)
    assert.deepEqual(
      (await jobs.list()).map(({ id }) => id),
      [done, open],
    );
  assert.deepEqual(logged.map(({ job }) => job).sort(), damaged.sort());
});

test("a damaged record of one job leaves others to be taken over and cancelled", async (t) => {
  const path = await temporaryDirectory(t);
  const store = storeIn(path);
  const [damaged, id] = [randomUUID(), randomUUID()];
  await createLocalStore(path).put(`${JOBS_DIRECTORY}/open/${damaged}.json`, Buffer.from("{"));
  await store.put({ ...request("quick"), id, state: "queued", createdAt: 1, attempts: 1 });
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  assert.equal((await ended(jobs, id)).state, "succeeded");
  assert.deepEqual(await jobs.open(), []);
  await jobs.cancelAt("t.lance");
});

test("ids from outside lead to no other files, and old jobs are forgotten", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  assert.equal(await jobs.get("../open/x"), undefined);
  const { id } = await jobs.submit(request("quick"));
  await ended(jobs, id);
  await store.prune(Date.now() + 1000, 10);
  assert.equal(await jobs.get(id), undefined);
});

test("the newest of the finished jobs are kept, up to a number", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { id } = await jobs.submit(request("quick"));
    await ended(jobs, id);
    ids.push(id);
    // The times of the records differ.
    await sleep(5);
  }
  await store.prune(0, 2);
  assert.deepEqual(
    (await store.list(assert.fail)).map(({ id }) => id),
    ids.slice(2),
  );
});

test("a list reads the record of a finished job once, and that of any other each time", async (t) => {
  const files = createLocalStore(await temporaryDirectory(t));
  const read: string[] = [];
  const get: typeof files.get = (key) => {
    read.push(key.replace(/^.*\//, ""));
    return files.get(key);
  };
  const store = createJobStore({ ...files, get }, JOBS_DIRECTORY);
  const [open, done, both] = ["1", "2", "3"].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
  const jobOf = (id = ""): Job => ({ ...request("quick"), id, state: "queued", createdAt: 1, attempts: 1 });
  const end = (id = "", state: Job["state"] = "succeeded") =>
    store.finish({ ...jobOf(id), state, finishedAt: 2 });
  await end(done);
  await end(both, "failed");
  for (const id of [open, both]) await store.put(jobOf(id));
  const statesOf = async () =>
    Object.fromEntries((await store.list(assert.fail)).map(({ id, state }) => [id, state]));
  const listed = { [String(open)]: "queued", [String(done)]: "succeeded", [String(both)]: "failed" };
  assert.deepEqual(await statesOf(), listed);
  read.length = 0;
  assert.deepEqual(await statesOf(), listed);
  assert.ok(!read.includes(`${done}.json`), read.join());
  await end(both);
  assert.deepEqual(await statesOf(), { ...listed, [String(both)]: "succeeded" });
  await store.prune(Date.now() + 1000, 0);
  assert.deepEqual(await statesOf(), { [String(open)]: "queued" });
});

test("records are read a few at a time", async (t) => {
  const files = createLocalStore(await temporaryDirectory(t));
  let [reading, most] = [0, 0];
  const count = async <T>(work: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++reading);
    return work().finally(() => reading--);
  };
  const store = createJobStore(
    { ...files, get: (key) => count(() => files.get(key)), head: (key) => count(() => files.head(key)) },
    JOBS_DIRECTORY,
  );
  const job: Job = { ...request("quick"), id: "", state: "queued", createdAt: 1, attempts: 1 };
  const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  for (let n = 0; n < 100; n++) {
    if (n < 50) await store.put({ ...job, id: idOf(n) });
    else await store.finish({ ...job, id: idOf(n), state: "succeeded", finishedAt: 2 });
  }
  assert.equal((await store.list(assert.fail)).length, 100);
  assert.equal((await store.listOpen(assert.fail)).length, 50);
  await store.prune(0, 10);
  assert.equal((await store.list(assert.fail)).length, 60);
  assert.ok(most <= 16, `${most} at a time`);
});

test("a job that ended is not open again when its record is removed, though its process died at its end", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000001";
  const job: Job = { ...request("quick"), id, state: "running", createdAt: 1, attempts: 1, begun: 1 };
  await store.finish({ ...job, state: "succeeded", finishedAt: 2 });
  await store.put(job);
  assert.deepEqual([await store.listOpen(assert.fail), (await store.get(id))?.state], [[], "succeeded"]);
  await store.prune(Date.now() + 1_000, 10);
  assert.deepEqual([await store.listOpen(assert.fail), await store.get(id)], [[], undefined]);
});

test("records that their writers may not be trusted with are read up to a size and a number", async (t) => {
  const path = await temporaryDirectory(t);
  const limits = { records: 20, recordBytes: 2_000, bytes: 10_000 };
  const store = createJobStore(createLocalStore(path), JOBS_DIRECTORY, limits);
  const job: Job = { ...request("quick"), id: "", state: "queued", createdAt: 1, attempts: 1 };
  const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  await store.put({ ...job, id: idOf(1), spec: { text: "x".repeat(3_000) } });
  await assert.rejects(store.get(idOf(1)), failsWith("DataLoss"));
  for (let n = 2; n < 40; n++) await store.put({ ...job, id: idOf(n) });
  const damaged: string[] = [];
  const found = await store.listOpen((id) => void damaged.push(id));
  assert.ok(found.length > 10 && found.length <= 20, `${found.length} records`);
  assert.ok(damaged.length > 0);
  for (let n = 2; n < 40; n++) await store.put({ ...job, id: idOf(n), spec: { text: "x".repeat(1_000) } });
  const large = await store.listOpen(() => {});
  assert.ok(large.length > 5 && large.length < 20, `${large.length} large records`);
});

test("nothing but records of jobs is removed from their directory", async (t) => {
  const path = await temporaryDirectory(t);
  const files = createLocalStore(path);
  await files.put(`${JOBS_DIRECTORY}/done/rows.lance`, Buffer.from("rows"));
  await storeIn(path).prune(Date.now() + 1_000, 0);
  assert.ok(await files.get(`${JOBS_DIRECTORY}/done/rows.lance`));
});
