import assert from "node:assert/strict";
import { test } from "vitest";
import { until } from "../../../../../test/support/until.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";
import { rows } from "../../rows-fixture.ts";
import { openClient, temporaryDirectory } from "../../test-support.ts";
import { CREATE_INDEX } from "./index-build.ts";

for (const [indexType, column] of [
  ["BTREE", "id"],
  ["IVF_FLAT", "vector"],
] as const)
  test(`a job whose process died when it had built its index of the type ${indexType} succeeds`, async (t) => {
    const root = await temporaryDirectory(t);
    const first = await openClient(t, root);
    await first.upload("createTable", "t", {}, rows([1, 2, 3]));
    await first.call("createTableIndex", "t", { column, indexType, name: "i" });
    const before = await first.call("listTableIndices", "t");
    await first.close();
    const jobs = createJobStore(createLocalStore(), `${root.slice(1)}/data/${JOBS_DIRECTORY}`);
    const plan = { location: "t.lance", column, name: "i", type: indexType, fields: {} };
    const id = "00000000-0000-4000-8000-000000000001";
    const spec = { location: plan.location, plan: JSON.stringify(plan) };
    const facts = { state: "running", createdAt: 1, startedAt: 1, attempts: 1, begun: 1 } as const;
    await jobs.put({ ...facts, id, kind: CREATE_INDEX, table: ["t"], spec });
    const second = await openClient(t, root);
    await until(async () => (await jobs.get(id))?.finishedAt !== undefined);
    const { state, error } = (await jobs.get(id)) ?? {};
    assert.deepEqual([state, error], ["succeeded", undefined]);
    assert.deepEqual(await second.call("listTableIndices", "t"), before);
  });
