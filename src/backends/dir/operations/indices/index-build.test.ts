import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { test, vi } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { openTexts, SCAN_BYTES } from "../../../../../test/fixtures/dir/wide-rows.ts";
import { until } from "../../../../../test/support/until.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";
import { openDirectory } from "../../open-directory.ts";
import { CREATE_INDEX, createIndexBuilds } from "./index-build.ts";

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

test("an index whose column is dropped or gets another type while it is built is not left behind", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const dataType = create(ValueSchema, { kind: { case: "stringValue", value: "int64" } });
  const changes = {
    dropped: () => client.call("alterTableDropColumns", "dropped", { columns: ["id"] }),
    typed: () => client.call("alterTableAlterColumns", "typed", { alterations: [{ path: "id", dataType }] }),
  };
  for (const [name, change] of Object.entries(changes)) {
    await client.upload("createTable", name, {}, rows([1, 2, 3]));
    const engine = engineWith(context.engine, "createIndexAsync", change);
    const { build } = createIndexBuilds({ ...context, engine });
    const fields = { customStopWords: [] };
    const plan = {
      location: `${name}.lance`,
      branch: undefined,
      column: "id",
      name: "i",
      type: "BTREE",
      fields,
    };
    const building = build([name], plan, new AbortController().signal);
    await assert.rejects(building, failsWith("TableColumnNotFound"));
    assert.deepEqual((await client.call("listTableIndices", name)).indexes, []);
    await client.query(name, { filter: "name = 'row 2'" });
  }
});

test("an index of texts for which the engine would need more than half of the free memory is refused", async (t) => {
  const { client } = await openTexts(t);
  const memory = vi.spyOn(process, "availableMemory").mockReturnValue(SCAN_BYTES);
  t.onTestFinished(() => memory.mockRestore());
  const build = (column: string, indexType: string) =>
    client.call("createTableIndex", "t", { column, indexType });
  await assert.rejects(build("text", "FTS"), failsWith("InvalidInput"));
  await build("id", "BTREE");
  memory.mockRestore();
  await build("text", "FTS");
});

test("an index of so many n-grams that the engine would need more than half of the free memory is refused", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1, 2, 3]));
  const memory = vi.spyOn(process, "availableMemory").mockReturnValue(64 * 1024);
  t.onTestFinished(() => memory.mockRestore());
  const build = (minNgramLength: number, maxNgramLength: number, baseTokenizer = "ngram") =>
    client.call("createTableIndex", "t", {
      column: "name",
      indexType: "FTS",
      baseTokenizer,
      minNgramLength,
      maxNgramLength,
      replace: true,
    });
  await assert.rejects(build(1, 32), failsWith("InvalidInput"));
  await build(2, 3);
  await build(3, 3);
  await build(1, 32, "simple");
  memory.mockRestore();
  await build(1, 32);
});
