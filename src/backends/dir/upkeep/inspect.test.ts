import assert from "node:assert/strict";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { Transaction_CreateIndexSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { commitChange } from "../format/changes/commit.ts";
import { copyMessage } from "../format/files/manifest.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { inspectTable, needOf, type TableFacts } from "./inspect.ts";
import { DEFAULT_POLICY } from "./policy.ts";

const MIB = 1024 * 1024;

const facts = (more: Partial<TableFacts> = {}): TableFacts => ({
  version: 1n,
  rows: 100_000,
  deletedRows: 0,
  keptDeletedRows: 0,
  fragments: 1,
  small: { fragments: 1, rows: 100_000, largest: 100_000, bytes: 32 * MIB, coarse: 1, outside: 0 },
  unindexedRows: 0,
  versions: 1,
  misread: false,
  ...more,
});
const small = (fragments: number, more: Partial<TableFacts["small"]> = {}) => ({
  ...facts().small,
  fragments,
  ...more,
});
const need = (more: Partial<TableFacts>) => needOf(facts(more), DEFAULT_POLICY);

test("a table without small fragments, deleted and unindexed rows needs nothing", () => {
  assert.equal(need({}), undefined);
});

test("many small fragments are joined at once, fewer when they are worth it and the writers are quiet", () => {
  assert.deepEqual(need({ small: small(16) }), { work: "all", when: "now" });
  assert.equal(need({ small: small(15) }), undefined);
  assert.deepEqual(need({ small: small(9, { largest: 60_000 }) }), { work: "all", when: "when quiet" });
  assert.deepEqual(need({ small: small(2, { bytes: MIB }) }), { work: "all", when: "when quiet" });
});

test("a table whose rows the engine may misread is left alone", () => {
  assert.equal(need({ small: small(16), unindexedRows: 1_000, misread: true }), undefined);
});

test("fragments that no index covers are joined without the other work", () => {
  assert.deepEqual(need({ small: small(16, { outside: 8 }) }), { work: "join", when: "now" });
  assert.deepEqual(need({ small: small(16, { outside: 7 }) }), { work: "all", when: "now" });
  assert.deepEqual(need({ small: small(2, { bytes: MIB, outside: 2 }) }), {
    work: "join",
    when: "when quiet",
  });
  assert.deepEqual(need({ small: small(2, { bytes: MIB, outside: 1 }) }), {
    work: "all",
    when: "when quiet",
  });
});

test("the more there is to rewrite, the more fragments it takes", () => {
  for (const [gibibytes, fragments] of [
    [0.125, 32],
    [1, 256],
    [4, 256],
    [64, 512],
  ] as const) {
    const bytes = gibibytes * 1024 * MIB;
    const each = { bytes, largest: 90_000, coarse: fragments / 2 };
    assert.equal(need({ small: small(fragments - 1, each) }), undefined);
    assert.deepEqual(need({ small: small(fragments, each) }), { work: "all", when: "now" });
  }
});

test("the parts of a long upload are not rewritten", () => {
  const parts = (number: number) =>
    small(number, { largest: 1, bytes: number * 16 * MIB, coarse: number, outside: number });
  for (const number of [2, 64, 255]) assert.equal(need({ small: parts(number) }), undefined);
  assert.deepEqual(need({ small: parts(256) }), { work: "join", when: "now" });
  assert.deepEqual(need({ small: { ...parts(3), bytes: 16 * MIB } }), { work: "join", when: "when quiet" });
});

test("a large fragment does not keep small ones from being joined", () => {
  const trickle = { bytes: 800 * MIB, largest: 90_000 };
  assert.equal(need({ small: small(56, trickle) }), undefined);
  assert.deepEqual(need({ small: small(57, trickle) }), { work: "all", when: "now" });
  const quiet = { ...trickle, largest: 80_000 };
  assert.deepEqual(need({ small: small(3, quiet) }), { work: "all", when: "when quiet" });
});

test("fragments of 4 MiB and more are counted by their files", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, { maintenance: false });
  const numbers = (count: number) =>
    tableToIPC(tableFromArrays({ number: Float64Array.from({ length: count }, Math.random) }), "stream");
  await client.upload("createTable", "t", {}, numbers(600_000));
  for (const count of [1, 400_000]) await client.upload("insertIntoTable", "t", {}, numbers(count));
  const facts = await inspectTable({ store: createLocalStore(), root: join(root, "data/t.lance").slice(1) });
  assert.deepEqual([facts.small.fragments, facts.small.coarse], [3, 1]);
});

test("rows outside an index count by their number and share", () => {
  assert.deepEqual(need({ unindexedRows: 1_000 }), { work: "all", when: "now" });
  assert.equal(need({ unindexedRows: 1_000, rows: 10_000_000 }), undefined);
  assert.deepEqual(need({ unindexedRows: 2_000, rows: 10_000_000 }), { work: "all", when: "when quiet" });
  assert.deepEqual(need({ unindexedRows: 60 }), { work: "all", when: "when quiet" });
});

test("deleted rows count by their share", () => {
  assert.equal(need({ deletedRows: 10_000 }), undefined);
  assert.deepEqual(need({ deletedRows: 12_000 }), { work: "join", when: "now" });
});

test("an index of a type that the engine does not know asks for no work, and its fragments are not joined", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0, 1, 2]));
  await client.upload("insertIntoTable", "t", {}, rows([3]));
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE" });
  await client.upload("insertIntoTable", "t", {}, rows([4]));
  const store = createLocalStore();
  const dataset = { store, root: store.keyOf(`${root}/data/t.lance`) };
  const before = await inspectTable(dataset);
  assert.deepEqual([before.unindexedRows, before.small.fragments], [1, 3]);
  await commitChange(dataset, () => ({
    operation: { case: "createIndex", value: create(Transaction_CreateIndexSchema) },
    changeIndices: (indices) =>
      indices.map((index) =>
        Object.assign(copyMessage(index), {
          indexDetails: { ...index.indexDetails, typeUrl: "/lance.index.pb.LaterIndexDetails" },
        }),
      ),
  }));
  const after = await inspectTable(dataset);
  assert.deepEqual([after.unindexedRows, after.small.fragments], [0, 1]);
});
