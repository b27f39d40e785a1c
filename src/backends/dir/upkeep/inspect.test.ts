import assert from "node:assert/strict";
import { test } from "vitest";
import { needOf, type TableFacts } from "./inspect.ts";
import { DEFAULT_POLICY } from "./policy.ts";

const MIB = 1024 * 1024;

const facts = (more: Partial<TableFacts> = {}): TableFacts => ({
  version: 1n,
  rows: 100_000,
  deletedRows: 0,
  fragments: 1,
  small: { fragments: 1, rows: 100_000, largest: 100_000, bytes: 32 * MIB },
  unindexedRows: 0,
  versions: 1,
  ...more,
});
const small = (fragments: number, more: Partial<TableFacts["small"]> = {}) => ({
  ...facts().small,
  fragments,
  ...more,
});
const need = (more: Partial<TableFacts>) => needOf(facts(more), DEFAULT_POLICY);

test("a table without small fragments, deleted and unindexed rows needs nothing", () => {
  assert.equal(need({}), "none");
});

test("many small fragments are joined at once, fewer when they are worth it and the writers are quiet", () => {
  assert.equal(need({ small: small(16) }), "now");
  assert.equal(need({ small: small(15) }), "none");
  assert.equal(need({ small: small(2, { largest: 60_000 }) }), "when quiet");
  assert.equal(need({ small: small(2, { bytes: MIB }) }), "when quiet");
});

test("the more there is to rewrite, the more fragments it takes", () => {
  const bytes = 64 * 64 * MIB;
  assert.equal(need({ small: small(127, { bytes }) }), "none");
  assert.equal(need({ small: small(128, { bytes }) }), "now");
});

test("rows outside an index count by their number and share", () => {
  assert.equal(need({ unindexedRows: 1_000 }), "now");
  assert.equal(need({ unindexedRows: 1_000, rows: 10_000_000 }), "none");
  assert.equal(need({ unindexedRows: 2_000, rows: 10_000_000 }), "when quiet");
  assert.equal(need({ unindexedRows: 60 }), "when quiet");
});

test("deleted rows count by their share", () => {
  assert.equal(need({ deletedRows: 10_000 }), "none");
  assert.equal(need({ deletedRows: 12_000 }), "now");
});
