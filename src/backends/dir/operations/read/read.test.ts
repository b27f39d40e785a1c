import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Float32, Int32, tableFromIPC, Utf8 } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { streamOf, vectorOf } from "../../../../../test/support/rows.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { Backend } from "../../../../namespace/lance-namespace.ts";
import { createDirectoryBackend } from "../../index.ts";

type Query = Omit<MessageInitShape<typeof QueryTableRequestSchema>, "$typeName">;

/** A condition with nearly all steps that a condition may have, which the texts with a letter meet. */
const costly = (letter: string) =>
  [230, 231].map((length) => `regexp_like(s, '${letter}|${"[ab]".repeat(length)}')`).join(" AND ");

/** Opens a table with a text for each id, and other columns that a test needs. */
async function openRows(
  t: TestContext,
  ids: readonly number[],
  textOf: (id: number) => string,
  others: Parameters<typeof streamOf>[0] = {},
) {
  const backend = await createDirectoryBackend({ root: await temporaryDirectory(t), log: silent });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  const rows = streamOf({
    id: { type: new Int32(), values: ids },
    s: { type: new Utf8(), values: ids.map(textOf) },
    v: { type: vectorOf(2, new Float32()), values: ids.map((id) => [id, 0]) },
    words: { type: new Utf8(), values: ids.map((id) => (id % 5 === 0 ? "five" : "other")) },
    ...others,
  });
  await client.upload("createTable", "t", {}, rows);
  return { backend, client };
}

const QUERIES: Readonly<Record<string, Query>> = {
  "an order": { orderBy: [{ columnName: "id", ascending: false }], k: 20n, offset: 3n },
  "an order and columns": {
    orderBy: [{ columnName: "s" }, { columnName: "id", ascending: false }],
    columns: { columnNames: ["id"], columnAliases: {} },
    k: 20n,
  },
  "a search for a vector": { vector: { singleVector: [3_000.2, 0] }, k: 20n },
  "a search for a vector with a filter after it": {
    vector: { singleVector: [3_000.2, 0] },
    k: 9_000n,
    prefilter: false,
  },
  "a search for words": { fullTextQuery: { stringQuery: { query: "five" } }, k: 100_000n },
  "a search for a vector and words": {
    vector: { singleVector: [3_000.2, 0] },
    fullTextQuery: { stringQuery: { query: "five" } },
    k: 20n,
  },
  "a fast scan": { fastSearch: true },
  "a fast scan for columns": {
    fastSearch: true,
    columns: { columnNames: ["id"], columnAliases: {} },
    k: 50n,
  },
  "a fast scan with an order": { fastSearch: true, orderBy: [{ columnName: "s" }, { columnName: "id" }] },
};

test("a query that the engine cannot stop finds the rows of its costly condition first, and has the same result", async (t) => {
  const ids = Array.from({ length: 12_000 }, (_, id) => id);
  const { client } = await openRows(t, ids, (id) => (id % 3 === 0 ? "aba" : "aaa"));
  await client.call("createTableIndex", "t", { column: "words", indexType: "FTS" });
  for (const [what, query] of Object.entries(QUERIES)) {
    const idsOf = async (filter: string) => {
      const found = tableFromIPC(await client.query("t", { ...query, filter }));
      return { ids: [...(found.getChild("id") ?? [])], names: found.schema.fields.map(({ name }) => name) };
    };
    const [expected, got] = [await idsOf("id % 3 = 0"), await idsOf(costly("b"))];
    assert.ok(expected.ids.length > 0, what);
    // Rows of equal scores have no order.
    if (what === "a search for words") for (const { ids } of [expected, got]) ids.sort((a, b) => a - b);
    assert.deepEqual(got, expected, what);
    const none = await idsOf(costly("c"));
    assert.deepEqual(none.ids, [], what);
    assert.deepEqual(none.names, expected.names, what);
  }
});

test("a query that the engine cannot stop is refused for too many rows of a costly condition, and so is its analyzed plan", async (t) => {
  const ids = Array.from({ length: 70_000 }, (_, id) => id);
  const { client } = await openRows(t, ids, () => "aa");
  const query = { ...QUERIES["an order"], filter: costly("a") };
  const refused = (what: RegExp) => (error: Error) =>
    failsWith("InvalidInput")(error) && what.test(error.message);
  await assert.rejects(client.query("t", query), refused(/steps for each row, and more than 65536 rows/));
  assert.equal(tableFromIPC(await client.query("t", { filter: query.filter })).numRows, ids.length);
  await assert.rejects(client.call("analyzeTableQueryPlan", "t", query), refused(/cannot be stopped/));
  const { plan } = await client.call("explainTableQueryPlan", "t", { query });
  assert.match(plan, /\[ab\]/);
});

const computedMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** No text of `a` and `b` meets it. It takes 0.2 s for 1,000 rows. */
const NOTHING = Array.from({ length: 6 }, (_, i) => `regexp_like(s, 'a[ab]{${75 + i}}[^ab]')`).join(" OR ");

const randomText = () => Array.from(randomBytes(100), (byte) => (byte % 2 === 0 ? "a" : "b")).join("");

const MANY = Array.from({ length: 24_000 }, (_, id) => id);

/** Ends a query with the costly condition after a while, and looks whether the engine computes for it on. */
async function assertEndsWithCall({ operations }: Backend, query: Query, restMs: number): Promise<void> {
  const ending = new AbortController();
  const call = beginCall(LanceNamespaceService.method.queryTable, { id: ["t"], signal: ending.signal });
  const result = operations.queryTable?.(
    create(QueryTableRequestSchema, { ...query, filter: NOTHING }),
    call,
  );
  assert.ok(result);
  const before = computedMs();
  const reading = assert.rejects(async () => {
    for await (const _message of result);
  }, failsWith("Cancelled"));
  while (computedMs() - before < 600) await sleep(20);
  ending.abort();
  await reading;
  const ended = computedMs();
  await sleep(restMs);
  assert.ok(computedMs() - ended < 1_500, `the engine computed for ${computedMs() - ended} ms more`);
}

for (const what of ["an order", "a search for a vector"]) {
  test(`${what} with a costly condition ends with its call`, async (t) => {
    const { backend } = await openRows(t, MANY, randomText);
    await assertEndsWithCall(backend, QUERIES[what] ?? {}, 3_000);
  });
}

test("a scan whose condition no row meets ends with its call, whatever columns it has", async (t) => {
  const wide = { type: new Utf8(), values: MANY.map(() => randomText().repeat(10)) };
  const { backend } = await openRows(t, MANY, randomText, { wide });
  await assertEndsWithCall(backend, {}, 4_000);
});
