import assert from "node:assert/strict";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, test } from "vitest";
import { anId, check, someRows } from "../../../../../test/fixtures/catalog/state.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import { createMemory } from "./memory.ts";
import type { Row } from "./row.ts";
import { type CatalogState, createState, openState, type SharedState } from "./state.ts";

type Model = Map<string, Row>;

/** Returns the content of a state as another thread gets it. */
function shared(state: CatalogState): SharedState {
  atOnce(state.prepareToShare());
  return structuredClone(state.share());
}

/** Changes a state and its model alike. */
function change(state: CatalogState, model: Model, put: readonly Row[], removed: readonly string[]): void {
  const changes = new Map<string, Row | undefined>(put.map((row) => [row.objectId, row]));
  for (const id of removed) changes.set(id, undefined);
  state.apply(changes);
  for (const [id, row] of changes) row === undefined ? model.delete(id) : model.set(id, row);
}

const modelOf = (rows: readonly Row[]): Model => new Map(rows.map((row) => [row.objectId, row]));

const aStep = fc.record({
  put: someRows,
  removed: fc.array(anId, { maxLength: 4 }),
  /** The state that changes: 0 is the shared one, 1 the copy that was opened last, and so on. */
  at: fc.nat(3),
  /** Whether a copy of what has changed is opened afterwards. */
  opened: fc.boolean(),
});

describe("shared state", () => {
  test("a copy has the content at the time when it was shared, whatever changes later, here or there", () => {
    fc.assert(
      fc.property(someRows, fc.array(aStep, { maxLength: 8 }), (first, steps) => {
        const states = [{ state: createState(first, createMemory(true)), model: modelOf(first) }];
        for (const { put, removed, at, opened } of steps) {
          const { state, model } = states[at % states.length] as (typeof states)[number];
          change(state, model, put, removed);
          if (opened) states.splice(1, 0, { state: openState(shared(state)), model: new Map(model) });
        }
        for (const { state, model } of states) check(state, model);
      }),
      { numRuns: 60 },
    );
  });

  test("a copy keeps addresses, duplicates and verdicts", () => {
    const state = createState([], createMemory(true));
    const row: Row = { objectId: "t", objectType: "table", location: "t.lance", properties: {} };
    state.apply(new Map([["t", row]]), new Map([["t", { fragment: 3, offset: 4 }]]));
    state.facts = { verdicts: new Map([["change", "refused"]]), transaction: "7-x.txn" };
    const copy = openState(shared(state));
    assert.deepEqual(copy.addressesOf("t"), [{ fragment: 3, offset: 4 }]);
    assert.equal(copy.verdictOf("change"), "refused");
    assert.equal(copy.facts.transaction, "7-x.txn");
    assert.deepEqual([copy.isMergeable, copy.duplicates], [true, 0]);
    copy.apply(new Map(), new Map([["t", { fragment: 5, offset: 6 }]]));
    assert.deepEqual(state.addressesOf("t"), [{ fragment: 3, offset: 4 }]);
  });

  test("a copy of many rows takes little memory, and a change of it copies only what it touches", () => {
    const names = Array.from({ length: 40_000 }, (_, number) => `n$t${number}`);
    const row = (objectId: string): Row => ({
      objectId,
      objectType: "table",
      location: `${objectId}.dir`,
      properties: {},
    });
    const state = createState(names.map(row), createMemory(true));
    const copy = openState(shared(state));
    assert.equal(copy.ownBytes, 256, "the empty tables of its indices");
    copy.apply(new Map([["n$new", row("n$new")]]));
    assert.ok(copy.ownBytes < 1_300_000, `${copy.ownBytes} bytes`);
    assert.equal(copy.size, names.length + 1);
    assert.equal(state.get("n$new"), undefined);
  });

  test("indices stay small when rows come, go and are shared again and again", () => {
    const row = (number: number): Row => ({
      objectId: `t${number}`,
      objectType: "table",
      location: `t${number}.lance`,
      properties: {},
    });
    const state = createState(
      Array.from({ length: 1_000 }, (_, number) => row(number)),
      createMemory(true),
    );
    let tables: number[] = [];
    for (let round = 0; round < 60; round++) {
      const changes = new Map<string, Row | undefined>();
      for (let i = 0; i < 50; i++) {
        changes.set(`t${round * 50 + i}`, undefined);
        changes.set(`t${1_000 + round * 50 + i}`, row(1_000 + round * 50 + i));
      }
      state.apply(changes);
      tables = shared(state).rows.byId.map(({ size }) => size);
    }
    const entries = tables.reduce((sum, size) => sum + size, 0);
    assert.ok(tables.length < 5 && entries < 3_000, `tables of ${tables} entries for 1,000 rows`);
    assert.equal(openState(shared(state)).get("t3999")?.location, "t3999.lance");
  });
});

/** Rows whose properties all name a version. */
function* rowsOf(version: number, count: number): Generator<Row> {
  const properties = { version: String(version) };
  for (let number = 0; number < count; number++) {
    // Some rows exist only in every second version, so that numbers of rows are used again.
    if (number % 3 === version % 2) continue;
    yield {
      objectId: `n$t${number}`,
      objectType: "table",
      location: `${version}/t${number}`,
      properties,
    };
  }
}

test("a thread that reads while versions are made never sees a part of another one", async (t) => {
  const ROWS = 1_500;
  const VERSIONS = 20;
  const reader = new Worker(
    new URL("../../../../../test/fixtures/catalog/shared-state-reader.ts", import.meta.url),
  );
  t.onTestFinished(async () => void (await reader.terminate()));
  const state = createState([], createMemory(true));
  let before: readonly Row[] = [];
  const answered: { version: number; fault: string | undefined }[] = [];
  reader.on("message", (answer) => answered.push(answer));
  for (let version = 1; version <= VERSIONS; version++) {
    const rows = [...rowsOf(version, ROWS)];
    const changes = new Map<string, Row | undefined>(before.map(({ objectId }) => [objectId, undefined]));
    for (const row of rows) changes.set(row.objectId, row);
    state.apply(changes);
    reader.postMessage({ version, size: rows.length, content: shareNow(state) });
    before = rows;
    // It reads this version while the next one is made in the same pages.
    if (version % 4 === 0) await once(reader, "message");
  }
  while (answered.length < VERSIONS) await once(reader, "message");
  assert.deepEqual(
    answered.filter(({ fault }) => fault !== undefined),
    [],
  );
});

function shareNow(state: CatalogState): SharedState {
  atOnce(state.prepareToShare());
  return state.share();
}
