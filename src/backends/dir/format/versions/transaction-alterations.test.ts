import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createMemoryStore, type MemoryStore } from "../../../../../test/fixtures/dir/format.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import {
  alter,
  MAX_REVISIONS,
  readAlteration,
  type TransactionAlteration,
} from "./transaction-alterations.ts";

const transaction = {
  version: 1n,
  uuid: "0-1-2",
  readVersion: 0n,
  operation: "Append",
  tag: undefined,
  properties: {},
};
const FILE = "t/_alter_transactions/0-1-2.json";

/** Puts a connection in front of the objects on which every request takes a while. */
function slow(store: MemoryStore): MemoryStore {
  const later =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A) => {
      await sleep(Math.random() * 3);
      return work(...args);
    };
  return { ...store, get: later(store.get), put: later(store.put), putIfAbsent: later(store.putIfAbsent) };
}

const set = (key: string, value: string) => (before: TransactionAlteration) => ({
  ...before,
  properties: new Map([...before.properties, [key, value]]),
});

test("loses no alteration of concurrent processes, and shows other implementations the last one", async () => {
  const store = createMemoryStore();
  const keys = ["a", "b", "c", "d"];
  const rounds = 5;
  await Promise.all(
    keys.map(async (key) => {
      const dataset = { store: slow(store), root: "t" };
      for (let i = 0; i < rounds; i++) {
        await alter(dataset, transaction, (before) => {
          assert.equal(Number(before.properties.get(key) ?? 0), i, "a writer sees what it wrote");
          return set(key, String(i + 1))(before);
        });
      }
    }),
  );
  const expected = Object.fromEntries(keys.map((key) => [key, String(rounds)]));
  const { properties } = await readAlteration({ store, root: "t" }, transaction);
  assert.deepEqual(Object.fromEntries(properties), expected);
  const file = JSON.parse(Buffer.from(store.objects.get(FILE) ?? "").toString());
  assert.deepEqual(file.properties, expected);
});

test("respects the writes of another implementation, and revisions that were not published", async () => {
  const store = createMemoryStore();
  const dataset = { store, root: "t" };
  await alter(dataset, transaction, set("a", "1"));
  const first = store.objects.get(FILE) as Uint8Array;
  await alter(dataset, transaction, set("b", "2"));
  // This happens if a process ends, or is slow, between its revision and the file.
  for (const stale of [first, undefined]) {
    if (stale === undefined) store.objects.delete(FILE);
    else store.objects.set(FILE, stale);
    const { properties } = await readAlteration(dataset, transaction);
    assert.deepEqual(Object.fromEntries(properties), { a: "1", b: "2" });
  }
  const theirs = { status: "Failed", properties: { c: "3" }, removed_properties: ["x"] };
  store.objects.set(FILE, Buffer.from(JSON.stringify(theirs)));
  const after = await alter(dataset, transaction, set("d", "4"));
  assert.deepEqual(
    [after.status, Object.fromEntries(after.properties), [...after.removed]],
    ["Failed", { c: "3", d: "4" }, ["x"]],
  );
  assert.deepEqual(await readAlteration(dataset, transaction), after);
});

test("limits the number of alterations of a transaction, and reports a damaged revision", async () => {
  const store = createMemoryStore();
  const dataset = { store, root: "t" };
  const revision = { alteration: {}, published: [] };
  const key = (number: number) => `t/_alter_transactions/0-1-2/${number}.json`;
  store.objects.set(key(MAX_REVISIONS), Buffer.from(JSON.stringify(revision)));
  await assert.rejects(alter(dataset, transaction, set("a", "1")), (error) =>
    isLanceError(error, "InvalidTableState"),
  );
  store.objects.set(key(MAX_REVISIONS), Buffer.from("[]"));
  await assert.rejects(readAlteration(dataset, transaction), /holds no revision/);
});

test("keeps all properties that gateways set concurrently on a transaction", async (t) => {
  const root = await temporaryDirectory(t);
  const clients = await Promise.all([1, 2, 3].map(() => openClient(t, root)));
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  await clients[0]?.upload("createTable", "t", {}, rows);
  const names = Array.from({ length: 15 }, (_, i) => `p${i}`);
  await Promise.all(
    names.map((key, i) =>
      clients[i % 3]?.call("alterTransaction", "t$1", {
        actions: [{ action: { case: "setPropertyAction", value: { key, value: "1" } } }],
      }),
    ),
  );
  const answer = await clients[0]?.call("describeTransaction", "t$1");
  assert.deepEqual(
    names.filter((name) => answer?.properties[name] !== "1"),
    [],
  );
});

test("carries out thousands of actions in order, and refuses too many properties", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  await client.upload("createTable", "t", {}, rows);
  const setting = (count: number, names: number) =>
    Array.from({ length: count }, (_, i) => ({
      action: { case: "setPropertyAction" as const, value: { key: `p${i % names}`, value: String(i) } },
    }));
  const unset = { action: { case: "unsetPropertyAction" as const, value: { key: "p1" } } };
  const { properties } = await client.call("alterTransaction", "t$1", {
    actions: [...setting(20_000, 500), unset],
  });
  assert.deepEqual([properties["p0"], properties["p1"], properties["p499"]], ["19500", undefined, "19999"]);
  await assert.rejects(
    client.call("alterTransaction", "t$1", { actions: setting(1_001, 1_001) }),
    (error) =>
      isLanceError(error, "InvalidInput") && /1001 properties, more than 1000/.test((error as Error).message),
  );
});
