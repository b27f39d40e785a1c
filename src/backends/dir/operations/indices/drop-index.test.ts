import assert from "node:assert/strict";
import { Int32 } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { streamOf } from "../../../../../test/support/rows.ts";
import { createDirectoryBackend } from "../../index.ts";

const INDEX = { column: "id", indexType: "BTREE", name: "by_id" };
const DROP = { indexName: INDEX.name };

/** Opens two gateways over a root with a table. */
async function openTwo(t: TestContext) {
  const root = await temporaryDirectory(t);
  const clients = [];
  for (let count = 0; count < 2; count++) {
    const client = clientOf(await createDirectoryBackend({ root, log: silent }));
    t.onTestFinished(client.close);
    clients.push(client);
  }
  const [one, other] = clients as [(typeof clients)[0], (typeof clients)[0]];
  await one.upload("createTable", "t", {}, streamOf({ id: { type: new Int32(), values: [1, 2, 3] } }));
  return { one, other };
}

const outcome = (drop: Promise<unknown>) =>
  drop.then(
    () => "dropped",
    (error: unknown) => (failsWith("TableIndexNotFound")(error as Error) ? "not found" : String(error)),
  );

test("of two drops of an index, whichever gateway makes them and whenever, one succeeds and the other finds no index", async (t) => {
  const { one, other } = await openTwo(t);
  for (let round = 0; round < 20; round++) {
    for (const [first, second] of [
      [one, other],
      [one, one],
    ] as const) {
      await one.call("createTableIndex", "t", INDEX);
      // Both have the table open.
      for (const client of [first, second]) await client.call("listTableIndices", "t");
      const drop = (client: typeof one) => outcome(client.call("dropTableIndex", "t", DROP));
      const outcomes =
        round % 2 === 0
          ? [await drop(first), await drop(second)]
          : (await Promise.all([drop(first), drop(second)])).sort();
      assert.deepEqual(
        outcomes,
        ["dropped", "not found"],
        `round ${round}, ${first === second ? "one gateway" : "two"}`,
      );
    }
  }
});

test("a drop of an index right after other changes is seen at once, and for good", async (t) => {
  const { one } = await openTwo(t);
  const newest = async () => (await one.call("describeTable", "t", { loadDetailedMetadata: true })).version;
  const indices = async () =>
    (await one.call("listTableIndices", "t")).indexes.map(({ indexName }) => indexName);
  await one.call("createTableIndex", "t", INDEX);
  await one.call("updateTable", "t", { updates: [{ column: "id", expression: "id + 1" }] });
  const before = await newest();
  assert.ok(before !== undefined);
  await one.call("dropTableIndex", "t", DROP);
  for (let look = 0; look < 3; look++) {
    assert.deepEqual(await indices(), []);
    assert.equal(await newest(), before + 1n);
  }
});
