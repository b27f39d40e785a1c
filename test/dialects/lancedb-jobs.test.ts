import assert from "node:assert/strict";
import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startServer } from "../support/server.ts";
import { LANCEDB, type RemoteCalls, remoteCalls } from "./remote-calls.ts";

async function serve(root: string) {
  const server = await startServer(await createDirectoryBackend({ root, log: pino({ level: "silent" }) }));
  return { ...server, calls: remoteCalls(server.port) };
}

/** Starts to fill a column, and returns the id of the job. */
async function startBackfill(
  { upload, post }: RemoteCalls,
  table: string,
  count: number,
  computed = "id * 2",
): Promise<string> {
  await upload(`table/${table}/create/`, personStream(people(count)));
  await post(`table/${table}/add_columns/`, { new_columns: [{ name: "twice", computed }] });
  const { job_id } = await post<{ job_id: string }>(`table/${table}/backfill_column`, { column: "twice" });
  return job_id;
}

test("LanceDB's clients follow a job to its result, in another process and after a restart", async (t) => {
  const { path: root, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const [first, second] = [await serve(root), await serve(root)];
  const id = await startBackfill(first.calls, "t", 5);
  const { result, job_type, spec, creation_ms } = await second.calls.ended(id);
  assert.deepEqual([job_type, spec["column"]], ["backfill_column", "twice"]);
  assert.ok(Math.abs(Date.now() - creation_ms) < 3_600_000);
  assert.deepEqual(result, {
    rows_assigned: 5,
    rows_failed: 0,
    rows_remaining: 0,
    source_version: 2,
    published_version: 4,
  });
  await Promise.all([first.close(), second.close()]);

  const third = await serve(root);
  t.onTestFinished(() => third.close());
  assert.deepEqual((await third.calls.ended(id)).result, result);
});

test("LanceDB's clients read the history of a job, as far as a filter lets it through", async (t) => {
  const { path: root, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const { calls, port, close } = await serve(root);
  t.onTestFinished(close);
  const job_id = await startBackfill(calls, "a", 2, "cast(name as int)");
  const { failure } = await calls.ended(job_id);
  const events = async (options: object = {}) => {
    const body = JSON.stringify({ job_id, ...options });
    const { status, bytes } = await sendHttp(port, { path: "/v1/jobs/query_events", headers: LANCEDB, body });
    assert.equal(status, 200, bytes.toString());
    assert.notEqual(bytes.toString("latin1", 0, 6), "ARROW1", "the clients read a stream and ask for none");
    return tableFromIPC(bytes)
      .toArray()
      .map((row) => row.toJSON());
  };
  const states = async (options?: object) => (await events(options)).map(({ state }) => state);
  assert.deepEqual(await states(), ["queued", "running", "failed"]);
  assert.deepEqual(await states({ filter: "state = 'running'" }), ["running"]);
  assert.deepEqual(await states({ filter: `state <> 'running' AND job_id = '${job_id}'`, limit: 1 }), [
    "queued",
  ]);
  assert.deepEqual(await states({ filter: "claim_entity = 'x'" }), []);
  const [first, , last] = await events();
  assert.equal(last?.["message"], failure?.message);
  assert.ok(Number(first?.["timestamp"]) <= Number(last?.["timestamp"]));
  for (const filter of [
    "state",
    "state = running",
    "nope = 'x'",
    "state = 'x' OR state = 'y'",
    "state = 'x' AND",
  ])
    await calls.refused("InvalidInput", "jobs/query_events", { job_id, filter });
  await calls.refused("TransactionNotFound", "jobs/query_events", { job_id: "nope" });
  for (const action of ["pause", "resume"]) await calls.refused("Unsupported", `jobs/${action}`, { job_id });
});

test("LanceDB's clients list and cancel jobs, and learn why a job failed", async (t) => {
  const { path: root, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const { calls, close } = await serve(root);
  t.onTestFinished(close);
  const done = await startBackfill(calls, "a", 2);
  await calls.ended(done);
  await calls.post("jobs/cancel", { job_id: done });
  assert.equal((await calls.ended(done)).job_state, "DONE");
  await calls.refused("TransactionNotFound", "jobs/cancel", { job_id: "nope" });
  await calls.refused("TransactionNotFound", "jobs/describe", { job_id: "nope" });

  const failed = await startBackfill(calls, "b", 2, "cast(name as int)");
  const { job_state, failure, result } = await calls.ended(failed);
  assert.deepEqual([job_state, failure?.retryable, result], ["FAILED", false, undefined]);
  assert.match(failure?.message ?? "", /cast/i);

  const { jobs } = await calls.post<{ jobs: { job_id: string; table: string; state: string }[] }>(
    "jobs/list",
    {},
  );
  assert.deepEqual(
    jobs.map(({ job_id, table }) => [job_id, table]),
    [
      [done, "a"],
      [failed, "b"],
    ],
  );
  const page = await calls.post<{ jobs: object[]; page_token: string }>("jobs/list", { limit: 1 });
  assert.equal(page.jobs.length, 1);
  const rest = await calls.post<{ jobs: object[] }>("jobs/list", { page_token: page.page_token });
  assert.deepEqual([...page.jobs, ...rest.jobs], jobs);
});
