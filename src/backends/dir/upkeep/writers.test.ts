import assert from "node:assert/strict";
import { expect, test } from "vitest";
import {
  openClient,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { UPKEEP_TIMES } from "./activity.ts";
import type { UpkeepOptions } from "./upkeep.ts";

const EAGER: UpkeepOptions = {
  // Fragments are joined by themselves, too, while few rows are outside the index.
  policy: { fragments: 2, unindexedRows: 20, deletedPercent: 1, maxVersions: 10 },
  times: {
    ...UPKEEP_TIMES,
    settleMs: 10,
    waitMs: 20,
    quietMs: 20,
    retryMs: 10,
    cheapRest: 0,
    // A gateway does not know which versions the calls of the other one read.
    surplusAgeMs: 10_000,
  },
};

const ROUNDS = 15;
const WITHIN = { timeout: 60_000 };

const fragmentsOf = async (client: TestClient) =>
  Number((await client.call("getTableStats", "t")).fragmentStats?.numFragments);

const everything = { k: 1_000_000n, vector: { singleVector: [0, 0] } };

test("writers of two gateways beside upkeep without a pause lose and double nothing", WITHIN, async (t) => {
  const root = await temporaryDirectory(t);
  const clients = [
    await openClient(t, root, { upkeep: EAGER }),
    await openClient(t, root, { upkeep: EAGER }),
  ] as const;
  const [first, second] = clients;
  await first.upload("createTable", "t", {}, rows(Array.from({ length: 200 }, (_, id) => id)));
  await first.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  const expected = new Set(Array.from({ length: 200 }, (_, id) => id));

  const repeat = async (work: (round: number) => Promise<unknown>) => {
    for (let round = 0; round < ROUNDS; round++) await work(round);
  };
  const inserting = (client: TestClient, from: number) =>
    repeat(async (round) => {
      await client.upload("insertIntoTable", "t", {}, rows([from + round]));
      expected.add(from + round);
    });
  const deleting = repeat(async (round) => {
    await first.call("deleteFromTable", "t", { predicate: `id = ${round * 2}` });
    expected.delete(round * 2);
  });
  const merging = repeat(async (round) => {
    const request = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
    await first.upload("mergeInsertIntoTable", "t", request, rows([101 + round, 3_000 + round]));
    expected.add(3_000 + round);
  });
  const updating = repeat((round) =>
    second.call("updateTable", "t", {
      predicate: `id = ${150 + round}`,
      updates: [{ column: "name", expression: "'new'" }],
    }),
  );
  const indexing = repeat(async (round) => {
    const name = `by_name_${round}`;
    await second.call("createTableScalarIndex", "t", { column: "name", indexType: "BTREE", name });
    await second.call("dropTableIndex", "t", { indexName: name });
  });
  await Promise.all([
    inserting(first, 1_000),
    inserting(second, 2_000),
    deleting,
    merging,
    updating,
    indexing,
  ]);
  // The engine lets an insert of another client win over a new column each time, so columns follow the inserts.
  await repeat(async (round) => {
    const name = `extra_${round}`;
    await first.call("alterTableAddColumns", "t", { newColumns: [{ name, expression: "id + 1" }] });
    await first.call("alterTableDropColumns", "t", { columns: [name] });
  });

  const ids = idsOf(await first.query("t", everything));
  assert.equal(ids.length, new Set(ids).size);
  assert.deepEqual(new Set(ids), expected);
  await expect.poll(() => fragmentsOf(second), WITHIN).toBe(1);
  assert.deepEqual(new Set(idsOf(await second.query("t", everything))), expected);
});
