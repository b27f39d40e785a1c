import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Field, Int32, Schema, Table, tableFromIPC, tableToIPC, vectorFromArray } from "apache-arrow";
import type { TestContext } from "vitest";
import { MaterializedViewKind } from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { Job } from "../../jobs/job.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";
import { openClient, type TestClient, temporaryDirectory } from "../../test-support.ts";

export const jobsOf = (root: string) =>
  createJobStore(createLocalStore(), `${root.slice(1)}/data/${JOBS_DIRECTORY}`);

export async function ended(root: string, id: string): Promise<Job> {
  for (;;) {
    const job = await jobsOf(root).get(id);
    if (job?.finishedAt !== undefined) return job;
    await sleep(5);
  }
}

export const rows = (from: number, to: number) =>
  tableToIPC(
    new Table({
      id: vectorFromArray(
        Array.from({ length: to - from }, (_, i) => from + i),
        new Int32(),
      ),
    }),
    "stream",
  );

/** A bare schema message, as pyarrow serializes a schema. */
export const ID = Buffer.from(
  tableToIPC(new Table(new Schema([new Field("id", new Int32(), true)])), "stream"),
).subarray(0, -8);

/** A table `t` with the ids 0 to 9 and a view `v` of it. */
export async function openView(t: TestContext, sourceQuery: string, options = {}) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, options);
  await client.upload("createTable", "t", {}, rows(0, 10));
  const outputSchema = ID.toString("base64");
  await client.call("createMaterializedView", "v", {
    kind: MaterializedViewKind.QUERY,
    sourceQuery,
    outputSchema,
  });
  const refresh = async (request = {}) => {
    const { jobId } = await client.call("refreshMaterializedView", "v", request);
    const { state, result, error } = await ended(root, jobId);
    assert.equal(state, "succeeded", error?.message ?? "");
    return [result?.["mode"], result?.["rows"]];
  };
  return { root, client, refresh, ids: () => idsOf(client) };
}

async function idsOf(client: TestClient): Promise<number[]> {
  const { data } = await queried(client);
  return data.sort((a, b) => a - b);
}

export async function queried(client: TestClient) {
  const table = tableFromIPC(await client.query("v"));
  return { data: [...(table.getChild("id") ?? [])].map(Number), schema: table.schema };
}
