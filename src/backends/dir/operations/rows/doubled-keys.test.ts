import assert from "node:assert/strict";
import { tableFromIPC } from "apache-arrow";
import { type TestContext, test, vi } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { loadNative } from "../../engine/native/load.ts";
import type { NativeMerge } from "../../engine/native/native.ts";

/** The part of the native module that the gateway does not name. */
interface Builders {
  readonly NativeMergeInsertBuilder: { readonly prototype: Pick<NativeMerge, "execute"> };
}

const UPSERT = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };

/** Opens a table with the rows 0 and 1, and has another program commit just before each of the next merges does. */
async function createWorld(t: TestContext, ...others: readonly (() => Promise<unknown>)[]) {
  const root = await temporaryDirectory(t);
  const [client, other] = [await openClient(t, root), await openClient(t, root)];
  await client.upload("createTable", "t", {}, rows([0, 1]));
  const { NativeMergeInsertBuilder } = loadNative() as unknown as Builders;
  const { prototype } = NativeMergeInsertBuilder;
  const execute = prototype.execute;
  const waiting = [...others];
  vi.spyOn(prototype, "execute").mockImplementation(async function (this: NativeMerge, file: Buffer) {
    await waiting.shift()?.();
    return Reflect.apply(execute, this, [file]);
  });
  t.onTestFinished(() => void vi.restoreAllMocks());
  return { client, other, waiting };
}

/** Returns the ids and names of all rows. */
async function rowsOf(client: Awaited<ReturnType<typeof openClient>>) {
  const table = tableFromIPC(await client.query("t", { k: 999n }));
  return table.toArray().map(({ id, name }) => [id, name] as const);
}

test("a merge updates the rows that another program has inserted since it began", async (t) => {
  const { client, other, waiting } = await createWorld(t);
  waiting.push(() => other.upload("insertIntoTable", "t", {}, rows([2, 9])));
  const merged = await client.upload("mergeInsertIntoTable", "t", UPSERT, rows([1, 2, 3]));
  assert.deepEqual([merged.numInsertedRows, merged.numUpdatedRows], [1n, 2n]);
  const ids = (await rowsOf(client)).map(([id]) => id);
  assert.deepEqual(ids.toSorted(), [0, 1, 2, 3, 9]);
});

test("a merge that only inserts leaves the rows that another program has inserted since it began", async (t) => {
  const { client, other, waiting } = await createWorld(t);
  waiting.push(() => other.upload("insertIntoTable", "t", {}, rows([2])));
  const merged = await client.upload(
    "mergeInsertIntoTable",
    "t",
    { on: ["id"], whenNotMatchedInsertAll: true },
    rows([2, 3]),
  );
  assert.deepEqual([merged.numInsertedRows, merged.numUpdatedRows], [1n, 0n]);
  assert.deepEqual((await rowsOf(client)).map(([id]) => id).toSorted(), [0, 1, 2, 3]);
});

test("a merge is repeated as often as another program inserts its keys", async (t) => {
  const { client, other, waiting } = await createWorld(t);
  for (const id of [2, 3]) waiting.push(() => other.upload("insertIntoTable", "t", {}, rows([id])));
  await client.upload("mergeInsertIntoTable", "t", { ...UPSERT, on: ["name", "id"] }, rows([2, 3]));
  assert.deepEqual((await rowsOf(client)).map(([id]) => id).toSorted(), [0, 1, 2, 3]);
});

test("a merge keeps its rows beside other keys, compactions and deletions of another program", async (t) => {
  const { client, other, waiting } = await createWorld(t);
  await client.upload("insertIntoTable", "t", {}, rows([5]));
  waiting.push(async () => {
    await other.upload("insertIntoTable", "t", {}, rows([7]));
    await other.call("deleteFromTable", "t", { predicate: "id = 0" });
  });
  const merged = await client.upload("mergeInsertIntoTable", "t", UPSERT, rows([5, 6]));
  assert.deepEqual([merged.numInsertedRows, merged.numUpdatedRows], [1n, 1n]);
  assert.deepEqual((await rowsOf(client)).map(([id]) => id).toSorted(), [1, 5, 6, 7]);
});

test("a merge keeps a row that it has updated beside one that another program has inserted since", async (t) => {
  const { client, other, waiting } = await createWorld(t);
  waiting.push(() => other.upload("insertIntoTable", "t", {}, rows([0, 1, 2])));
  const merged = await client.upload("mergeInsertIntoTable", "t", UPSERT, rows([1, 2]));
  assert.deepEqual([merged.numInsertedRows, merged.numUpdatedRows], [0n, 2n]);
  assert.deepEqual((await rowsOf(client)).map(([id]) => id).toSorted(), [0, 0, 1, 1, 2]);
});
