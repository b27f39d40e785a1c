import assert from "node:assert/strict";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { beginCall, createCaller } from "../../../../test/support/caller.ts";
import { until } from "../../../../test/support/until.ts";
import { LanceDbService } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../../namespace/lance-namespace.ts";
import { createService } from "../../../pipeline/create-service.ts";
import { createDirectoryBackend } from "../../dir/index.ts";
import { createComposedBackend } from "../index.ts";

const log = pino({ level: "silent" });
const limits = { maxUploadBytes: 2 ** 26 };
const ID = ["t"];
const { listJobs, describeJob, cancelJob, queryJobEvents } = LanceDbService.method;

/** Opens a catalog in a directory, and gateways in front of it. */
async function open(t: TestContext) {
  const root = await temporaryDirectory(t);
  const directory = await createDirectoryBackend({ root, log });
  t.onTestFinished(() => directory.close());
  const operations = directory.operations as LanceNamespace;
  const denied = new Set<string>();
  const broken = new Set<string>();
  const catalog: Backend = {
    name: "catalog",
    operations: {
      ...operations,
      async describeTable(request, call) {
        if (denied.has(call.headers["authorization"] ?? ""))
          throw new LanceError("PermissionDenied", "not yours");
        if (broken.has(call.id.join("$"))) throw new LanceError("InvalidTableState", "it has no location");
        return operations.describeTable(request, call);
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  function gateway() {
    const backend = createComposedBackend(catalog, { log, allowedLocations: [root] });
    t.onTestFinished(() => backend.close());
    const service = createService({ databases: new Map([[undefined, { backend, limits }]]) });
    const call = (
      method: typeof describeJob | typeof cancelJob | typeof listJobs,
      message = {},
      headers = {},
    ) =>
      service.unary(
        method as typeof describeJob,
        create(method.input as typeof describeJob.input, message),
        beginCall(method, { headers: Object.assign(Object.create(null), headers) }),
      ) as Promise<unknown>;
    return {
      backend,
      service,
      client: createCaller({ backend, limits }),
      describe: async (jobId: string, headers = {}) =>
        (await call(describeJob, { jobId }, headers)) as {
          jobState: string;
          jobId: string;
          jobType: string;
          failure?: unknown;
        },
      /** Waits for the end of a job, and returns its description. */
      async ended(jobId: string) {
        await until(async () => (await this.describe(jobId)).jobState !== "IN_PROGRESS");
        return this.describe(jobId);
      },
      cancel: (jobId: string) => call(cancelJob, { jobId }),
      list: async (headers = {}) =>
        ((await call(listJobs, {}, headers)) as { jobs: { jobId: string; table: string; state: string }[] })
          .jobs,
    };
  }
  return { root, directory, denied, broken, gateway, upstream: createCaller({ backend: directory, limits }) };
}

/** Starts to build an index, without a wait for its end. */
async function startIndex(
  client: ReturnType<Awaited<ReturnType<typeof open>>["gateway"]>["client"],
  id = ID,
) {
  const context = { "header.prefer": "respond-async" };
  const { jobId = "" } = await client.createTableIndex({ id, context, column: "id", indexType: "BTREE" });
  return jobId;
}

const noJob = (error: unknown) => isLanceError(error, "TransactionNotFound");

test("a job is followed by its id in every gateway of the catalog, and listed where it ran", async (t) => {
  const { gateway } = await open(t);
  const [first, second] = [gateway(), gateway()];
  await first.client.createTable({ id: ID }, personStream(people(5)));
  const jobId = await startIndex(first.client);
  const { jobType, jobId: named, jobState, failure } = await second.ended(jobId);
  assert.deepEqual([jobType, named, jobState, failure], ["create_index", jobId, "DONE", undefined]);
  const events = second.service.download(
    queryJobEvents,
    create(queryJobEvents.input, { jobId }),
    beginCall(queryJobEvents),
  );
  assert.ok((await Array.fromAsync(events)).length > 0);
  assert.deepEqual(
    (await first.list()).map(({ jobId, table, state }) => [jobId, table, state]),
    [[jobId, "t", "DONE"]],
  );
  // The second one has not worked on the table.
  assert.deepEqual(await second.list(), []);
  assert.deepEqual(await second.backend.tableOfJob?.(jobId), ID);
  await second.cancel(jobId);
  assert.equal((await second.describe(jobId)).jobState, "DONE");
  const { indexes } = await second.client.listTableIndices({ id: ID });
  assert.deepEqual(
    indexes.map(({ indexName }) => indexName),
    ["id_idx"],
  );
});

test("a caller sees a job only while the upstream describes its table to that caller", async (t) => {
  const { gateway, denied, upstream } = await open(t);
  const own = gateway();
  await own.client.createTable({ id: ID }, personStream(people(5)));
  const jobId = await startIndex(own.client);
  const other = { authorization: "Bearer other" };
  denied.add(other.authorization);
  await assert.rejects(own.describe(jobId, other), noJob);
  assert.deepEqual(await own.list(other), []);
  assert.equal((await own.list()).length, 1);
  assert.equal((await own.ended(jobId)).jobState, "DONE");
  await upstream.dropTable({ id: ID });
  await assert.rejects(own.describe(jobId), noJob);
  assert.deepEqual(await own.list(), []);
});

test("ids that no gateway gives, and those of other tables, name no job", async (t) => {
  const { gateway } = await open(t);
  const own = gateway();
  await own.client.createTable({ id: ID }, personStream(people(1)));
  const record = "11111111-2222-3333-4444-555555555555";
  const nameOf = (text: string) => Buffer.from(text).toString("base64url");
  for (const id of [
    "x",
    record,
    `${record}.${nameOf("t")}`,
    `${record}.${nameOf("missing")}`,
    `${record}.${nameOf("..")}`,
    `${record}.${nameOf("a$")}`,
    `../../${record}.${nameOf("t")}`,
  ])
    await assert.rejects(own.describe(id), noJob, id);
});

test("a drop of the table during a job ends it, and the next table of the name has none", async (t) => {
  const { gateway, upstream, root } = await open(t);
  const own = gateway();
  await own.client.createTable({ id: ID }, personStream(people(5)));
  const { location } = await own.client.describeTable({ id: ID });
  assert.ok(location?.startsWith(join(root)));
  const jobId = await startIndex(own.client);
  await upstream.dropTable({ id: ID });
  await assert.rejects(own.describe(jobId), noJob);
  await own.client.createTable({ id: ID }, personStream(people(2)));
  await assert.rejects(own.describe(jobId), noJob);
  assert.deepEqual((await own.client.listTableIndices({ id: ID })).indexes, []);
});

test("a table that cannot be read leaves the jobs of the others in the list", async (t) => {
  const { gateway, broken } = await open(t);
  const own = gateway();
  for (const id of [ID, ["lost"]]) await own.client.createTable({ id }, personStream(people(5)));
  const jobId = await startIndex(own.client);
  const other = await startIndex(own.client, ["lost"]);
  for (const id of [jobId, other]) await own.ended(id);
  broken.add("lost");
  assert.deepEqual(
    (await own.list()).map((job) => job.jobId),
    [jobId],
  );
  broken.add("t");
  await assert.rejects(own.list(), /no location/);
});
