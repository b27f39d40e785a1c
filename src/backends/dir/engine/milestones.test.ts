import assert from "node:assert/strict";
import { Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { atOnce } from "../../../runtime/pace.ts";
import { openDirectory } from "../open-directory.ts";
import { milestonesOf } from "./milestones.ts";
import { countMatching } from "./passing-rows.ts";
import { costSteps } from "./sql/costs.ts";

/** A condition with half of the steps that a condition may have; whether the text has a `b` decides. */
const costlyAnd = (part: string) => `${part} AND regexp_like(s, 'b|${"[ab]".repeat(250)}')`;
const ROWS = 6_000;

/** Opens a table of texts, of which every third one has a `b`, in fragments of 1,500 rows. */
async function openTexts(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (let first = 0; first < ROWS; first += 1_500) {
    const ids = Array.from({ length: 1_500 }, (_, i) => first + i);
    const rows = new Table({
      id: vectorFromArray(ids, new Int32()),
      s: vectorFromArray(
        ids.map((id) => (id % 3 === 0 ? "aba" : "aaa")),
        new Utf8(),
      ),
    });
    const operation = first === 0 ? "createTable" : "insertIntoTable";
    await client.upload(operation, "t", {}, tableToIPC(rows, "stream"));
  }
  return { root, client };
}

const milestonesOf8192 = (where: string) => milestonesOf(where, atOnce(costSteps([where])), 8192);

test("a condition that costs little has no milestones", async () => {
  assert.equal(await milestonesOf8192("id > 5 AND s LIKE '%a%'"), undefined);
});

test("milestones leave the conditions that an index answers as they are", async () => {
  const where = async (condition: string) => (await milestonesOf8192(condition))?.where ?? "";
  const costly = "regexp_like(s, '[ab]{100}')";
  assert.match(
    await where(`id = 5 AND ${costly} AND k BETWEEN 1 AND 2`),
    /^id = 5 AND k BETWEEN 1 AND 2 AND \(cast\(_rowid as bigint\) % \d+ = \d+ OR \(regexp_like\(s, '\[ab\]\{100\}'\)\)\)$/,
  );
  assert.match(await where(costly), /^\(cast\(_rowid as bigint\) % \d+ = \d+ OR \(regexp_like/);
  for (const whole of [`id = 5 AND ${costly} OR id = 6`, `CASE WHEN id = 5 AND ${costly} THEN true END`])
    assert.match(await where(whole), /^\(cast\(_rowid as bigint\) % \d+ = \d+ OR \((?:id|CASE)/);
});

test("a count of rows that do not exist can be stopped", async (t) => {
  const { root } = await openTexts(t);
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const lease = await context.engine.acquire(`${root}/data/t.lance`);
  let asked = 0;
  const isWanted = () => ++asked < 3;
  const options = { tableRows: ROWS, width: 0, timeoutMs: undefined, isWanted };
  // So costly that each fragment has a milestone.
  const nothing = ["c", "d"].map((c) => `regexp_like(s, '${c}|${c}${"[ab]".repeat(240)}')`).join(" OR ");
  assert.equal(await countMatching(lease.table, nothing, options), 0);
  assert.equal(asked, 3);
  lease.release();
});

test("milestones are in no result", async (t) => {
  const { client } = await openTexts(t);
  await client.call("deleteFromTable", "t", { predicate: "id % 7 = 1" });
  const expected = Array.from({ length: ROWS }, (_, id) => id).filter(
    (id) => id % 3 === 0 && id % 7 !== 1 && id > 10,
  );
  const predicate = costlyAnd("id > 10");
  const { count } = await client.call("countTableRows", "t", { predicate });
  assert.equal(Number(count), expected.length);
  for (const [k, offset] of [
    [undefined, 0],
    [10, 0],
    [10, 1_000],
    [2_000, 500],
    [5, 5_000],
  ] as const) {
    const request = {
      filter: predicate,
      offset: BigInt(offset),
      ...(k === undefined ? {} : { k: BigInt(k) }),
    };
    for (const columns of [undefined, { columnNames: ["id"], columnAliases: {} }]) {
      const found = tableFromIPC(await client.query("t", { ...request, columns }));
      const names = columns?.columnNames ?? ["id", "s"];
      assert.deepEqual(
        found.schema.fields.map(({ name }) => name),
        names,
      );
      assert.deepEqual(
        [...(found.getChild("id") ?? [])],
        expected.slice(offset, offset + (k ?? ROWS)),
        `${k} rows from ${offset}`,
      );
    }
  }
});

test("errors about a costly condition are about its own text", async (t) => {
  const { client } = await openTexts(t);
  const predicate = costlyAnd("other > 1");
  const fails = (error: Error) =>
    failsWith("TableColumnNotFound")(error) && !/_rowid|__lance_gateway/.test(error.message);
  await assert.rejects(client.call("countTableRows", "t", { predicate }), fails);
  await assert.rejects(client.query("t", { filter: predicate }), fails);
});
