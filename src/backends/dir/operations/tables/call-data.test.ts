import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Bool, Float32, Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test, vi } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { idsOf } from "../../../../../test/fixtures/dir/rows.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createTurns } from "../../concurrency/turns.ts";
import { openDirectory } from "../../open-directory.ts";
import { createChangeOperations } from "../rows/change.ts";
import { openGuarded } from "./call-data.ts";

for (const next of ["nothing", "another table"]) {
  test(`work on a table that was dropped, and has ${next} in its place, does not report damage`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
    t.onTestFinished(close);
    await client.upload("createTable", "t", {}, personStream(people(3)));
    const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"] });
    const data = await openGuarded(context, call, {});
    await client.call("dropTable", "t");
    if (next !== "nothing") await client.call("declareTable", "t");
    await assert.rejects(
      data.wait(() => data.table.checkoutLatest()),
      failsWith("TableNotFound"),
    );
    data.release();
  });
}

test("costly work keeps its caller's turn after the call has ended, and other callers have theirs", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const engineTurns = createTurns(2, 1);
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false, engineTurns });
  t.onTestFinished(close);
  await client.upload("createTable", "t", {}, personStream(people(3)));
  const open = async (peer: string, signal = new AbortController().signal) => {
    const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"], peer, signal });
    return openGuarded(context, call, {});
  };
  const { promise: endless, resolve: end } = Promise.withResolvers<void>();
  const ending = new AbortController();
  const first = await open("10.0.0.1", ending.signal);
  first.takeTurns();
  const costly = assert.rejects(
    first.wait(() => endless),
    failsWith("Cancelled"),
  );
  ending.abort();
  await costly;
  first.release();
  const second = await open("10.0.0.1");
  second.takeTurns();
  let began = false;
  const waiting = second.wait(async () => {
    began = true;
  });
  const other = await open("10.0.0.2");
  other.takeTurns();
  assert.equal(await other.wait(async () => other.wait(async () => "nested")), "nested");
  assert.equal(await (await open("10.0.0.1")).wait(async () => "cheap"), "cheap");
  assert.equal(began, false);
  end();
  await waiting;
  assert.equal(began, true);
});

test("a change that takes longer than ten seconds is noted for other processes until it ends", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, personStream(people(3)));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const isNoted = () => context.work.isAtWork("t.lance");
  t.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const seen: boolean[] = [];
  const engine = engineWith(context.engine, "delete", async () => {
    vi.advanceTimersByTime(9_000);
    await turn();
    seen.push(await isNoted());
    vi.advanceTimersByTime(1_000);
    while (!(await isNoted())) await turn();
    seen.push(true);
  });
  const { deleteFromTable } = createChangeOperations({ ...context, engine });
  const method = LanceNamespaceService.method.deleteFromTable;
  const call = beginCall(method, { id: ["t"] });
  const { numDeletedRows } = await deleteFromTable(create(method.input, { predicate: "id = 1" }), call);
  assert.equal(numDeletedRows, 1n);
  assert.deepEqual(seen, [false, true]);
  assert.equal(await isNoted(), false);
});

const NUMBERS = [null, 1, 1, 2, 2];
const TEXTS = ["a", "a", "b", "b", null];
const FLAGS = [null, true, false, null, true];
const RATIOS = [0.1, 0.3, 0.5, 0.7, null];

/** Creates a table and its indices, by column. */
async function openIndexed(t: TestContext, indices: Readonly<Record<string, string>>) {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = new Table({
    id: vectorFromArray([...NUMBERS.keys()], new Int32()),
    number: vectorFromArray(NUMBERS, new Int32()),
    text: vectorFromArray(TEXTS, new Utf8()),
    flag: vectorFromArray(FLAGS, new Bool()),
    ratio: vectorFromArray(RATIOS, new Float32()),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  for (const [column, indexType] of Object.entries(indices))
    await client.call("createTableScalarIndex", "t", { column, indexType });
  return client;
}

for (const indexType of ["BLOOMFILTER", "ZONEMAP"]) {
  test(`a condition with a negation finds, updates and deletes all of its rows where another column has a ${indexType} index`, async (t) => {
    const predicate = "number != 1 OR text = 'a'";
    const ids = [0, 1, 3, 4];
    const client = await openIndexed(t, { number: "BTREE", text: indexType });
    assert.equal((await client.call("countTableRows", "t", { predicate })).count, 4n);
    assert.deepEqual(idsOf(await client.query("t", { filter: predicate })).sort(), ids);
    const updates = [{ column: "flag", expression: "flag" }];
    assert.equal((await client.call("updateTable", "t", { predicate, updates })).updatedRows, 4n);
    assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, 4n);
    assert.deepEqual(idsOf(await client.query("t")), [2]);
  });
}

test("a negated truth selects the rows with a null where the column has an index", async (t) => {
  const client = await openIndexed(t, { flag: "BTREE" });
  for (const [predicate, count] of [
    ["NOT (flag IS TRUE)", 3n],
    ["NOT (flag IS FALSE)", 4n],
  ] as const)
    assert.equal((await client.call("countTableRows", "t", { predicate })).count, count, predicate);
});

test("a condition with a negation compares a column as the engine does, so that a deletion spares the equal row", async (t) => {
  const predicate = "ratio != 0.3 AND id >= 0";
  const client = await openIndexed(t, { text: "ZONEMAP" });
  assert.equal((await client.call("countTableRows", "t", { predicate })).count, 3n);
  assert.deepEqual(idsOf(await client.query("t", { filter: predicate })).sort(), [0, 2, 3]);
  const found = { predicate: "NOT (flag IS TRUE) AND ratio = 0.1 AND regexp_match(text, 'a')" };
  assert.equal((await client.call("countTableRows", "t", found)).count, 1n);
  assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, 3n);
  assert.deepEqual(idsOf(await client.query("t")), [1, 4]);
});

test("an index is used for conditions that it answers correctly", async (t) => {
  const client = await openIndexed(t, { number: "BTREE", text: "BLOOMFILTER" });
  const planOf = async (filter: string) =>
    (await client.call("explainTableQueryPlan", "t", { query: { filter } })).plan;
  assert.match(await planOf("number = 1 OR text = 'a'"), /ScalarIndexQuery/);
  assert.match(await planOf("NOT number = 1"), /ScalarIndexQuery/);
  assert.doesNotMatch(await planOf("NOT number = 1 OR text = 'a'"), /ScalarIndexQuery/);
});
