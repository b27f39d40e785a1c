import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { clientOf, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { ListJobsRequestSchema } from "../../../../gen/lance/gateway/v1/job_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createDirectoryBackend } from "../../index.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";

test("a job belongs to its table under the present name, and not to a later table of the former one", async (t) => {
  const root = await temporaryDirectory(t);
  const backend = await createDirectoryBackend({ root, log: silent });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  await client.upload("createTable", "t", {}, rows([1]));
  const id = "00000000-0000-4000-8000-000000000001";
  const facts = {
    kind: "create_index",
    state: "succeeded",
    createdAt: 1,
    finishedAt: 2,
    attempts: 1,
  } as const;
  const jobs = createJobStore(createLocalStore(), `${root.slice(1)}/data/${JOBS_DIRECTORY}`);
  await jobs.finish({ ...facts, id, table: ["t"], spec: { location: "t.lance" } });
  const tables = async () => {
    const list = await backend.extensions?.listJobs?.(create(ListJobsRequestSchema), {} as Call);
    assert.deepEqual(
      list?.jobs.map(({ endedAtMillis }) => endedAtMillis),
      [2n],
    );
    return [list?.jobs.map(({ table }) => table), await backend.tableOfJob?.(id)];
  };
  assert.deepEqual(await tables(), [["t"], ["t"]]);
  await client.call("createNamespace", "n");
  await client.call("renameTable", "t", { newTableName: "u", newNamespaceId: ["n"] });
  await client.upload("createTable", "t", {}, rows([2]));
  assert.deepEqual(await tables(), [["n$u"], ["n", "u"]]);
});
