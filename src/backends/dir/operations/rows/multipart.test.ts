import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { copyCall } from "../../../../namespace/call/call.ts";
import { createByteBudget } from "../../../../namespace/memory/byte-budget.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import { requireTable } from "../tables/find-table.ts";
import { createMultipartWrites } from "./multipart.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1, 2], new Int32()) }), "stream");

/** Begins a write of a table, and returns what completes or aborts it. */
async function openWrite(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const writes = createMultipartWrites(context);
  const table = await requireTable(context, { id: ["t"] });
  const write = { id: await writes.begin(table, undefined), table, branch: undefined };
  const call = beginCall(LanceNamespaceService.method.insertIntoTable, { id: ["t"] });
  async function* part() {
    yield rows;
  }
  return {
    context,
    table,
    store: context.store,
    stage: (name: string) => writes.stage({ write, name, overwrite: false }, part(), call),
    complete: (store = context.store, own = call, engine = context.engine) =>
      createMultipartWrites({ ...context, store, engine }).complete(write, own),
    call,
    abort: (store: ObjectStore) => createMultipartWrites({ ...context, store }).abort(write),
    count: async () => (await client.call("countTableRows", "t")).count,
  };
}

test("a new write does not look at those that are open", async (t) => {
  const { context, table } = await openWrite(t);
  const listed: string[] = [];
  const list = (directory: string) => {
    listed.push(directory);
    return context.store.list(directory);
  };
  const writes = createMultipartWrites({ ...context, store: { ...context.store, list } });
  for (let i = 0; i < 3; i++) await writes.begin(table, undefined);
  assert.deepEqual(listed, []);
});

test("of a completion and an abort at the same time, one gets the write as a whole", async (t) => {
  const { store, stage, complete, abort, count } = await openWrite(t);
  const taken = Promise.withResolvers<void>();
  const afterTaken =
    <A extends unknown[], T>(request: (...args: A) => Promise<T>) =>
    (...args: A) =>
      taken.promise.then(() => request(...args));
  let aborted: Promise<void> | undefined;
  async function* list(directory: string) {
    taken.resolve();
    await aborted?.catch(() => {});
    yield* store.list(directory);
  }
  for (const name of ["a", "b"]) await stage(name);
  aborted = abort({ ...store, putIfAbsent: afterTaken(store.putIfAbsent), delete: afterTaken(store.delete) });
  const completed = complete({ ...store, list });
  await assert.rejects(aborted, failsWith("TransactionNotFound"));
  assert.equal((await completed).rows, 4n);
  assert.equal(await count(), 6n);
});

test("a write is completed once when a bucket frees it late after a failed completion", async (t) => {
  const { store, stage, complete, count } = await openWrite(t);
  const late: (() => Promise<boolean>)[] = [];
  const twice = (request: () => Promise<boolean>) => {
    late.push(request);
    return request();
  };
  const freeing: ObjectStore = {
    ...store,
    delete: (key) => twice(() => store.delete(key)),
    deleteTagged: (key, tag) => twice(() => store.deleteTagged(key, tag)),
  };
  await assert.rejects(complete(freeing), failsWith("InvalidInput"));
  await stage("a");
  async function* list(directory: string) {
    for (const request of late.splice(0)) await request();
    await assert.rejects(complete(), failsWith("TransactionNotFound"));
    yield* store.list(directory);
  }
  await complete({ ...store, list });
  assert.equal(await count(), 4n);
});

test("a completion takes memory for its parts before it reads them, and can be repeated when there is none", async (t) => {
  const { store, stage, complete, count, call } = await openWrite(t);
  for (const name of ["a", "b"]) await stage(name);
  const budget = createByteBudget(3 * rows.byteLength);
  const other = budget.open();
  other.take(1.5 * rows.byteLength);
  const within = () => {
    const hold = budget.open();
    return copyCall(call, {
      holdBody: (bytes) => hold.take(bytes),
      releaseBody: (bytes) => hold.release(bytes),
    });
  };
  await assert.rejects(complete(store, within()), failsWith("Throttling"));
  assert.equal(await count(), 2n);
  other.release();
  await complete(store, within());
  assert.equal(await count(), 6n);
});

test("a completion whose rows are in the table is not repeated when the engine fails without saying so", async (t) => {
  const { context, store, stage, complete, count, call } = await openWrite(t);
  await stage("a");
  const engine: typeof context.engine = {
    ...context.engine,
    async acquire(...args) {
      const lease = await context.engine.acquire(...args);
      const table = Object.create(lease.table, {
        version: { value: () => lease.table.version() },
        schema: { value: () => lease.table.schema() },
        add: {
          async value(...rows: Parameters<typeof lease.table.add>) {
            await lease.table.add(...rows);
            throw new Error('task 7 panicked with message "unreachable"');
          },
        },
      });
      return { ...lease, table };
    },
  };
  await assert.rejects(complete(store, call, engine), failsWith("OutcomeUnknown"));
  await assert.rejects(complete(), failsWith("TransactionNotFound"));
  assert.equal(await count(), 4n);
});
