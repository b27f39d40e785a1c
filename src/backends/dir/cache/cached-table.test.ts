import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import { startTestCache, type TestCache } from "../../../../test/fixtures/dir/cache.ts";
import {
  clientOf,
  failsWith,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import type { S3Request } from "../../../../test/support/s3-server.ts";
import { until } from "../../../../test/support/until.ts";
import { LanceDbService } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { parseIdentifier } from "../../../namespace/identifier.ts";
import { createChanges } from "../../../runtime/threads/changes.ts";
import { type SharedDatabase, UNSHARED } from "../../../runtime/threads/sharing.ts";
import { createDirectoryBackend, type DirectoryBackend } from "../index.ts";
import { cacheableKindOf } from "./cacheable.ts";

const IDS = Array.from({ length: 3_000 }, (_, index) => index);

function openBackend({ s3, joined }: TestCache, more = {}): Promise<DirectoryBackend> {
  const options = {
    ...{ root: "s3://lance/root", storageOptions: s3.options, log: silent, maintenance: false },
    // Their looks at the catalog count as requests.
    autoRefresh: { settleMs: 1, waitMs: 1 },
  };
  return createDirectoryBackend({ ...options, cache: joined, ...more });
}

async function openClient(cached: TestCache, more = {}): Promise<TestClient> {
  return clientOf(await openBackend(cached, more));
}

async function createTable(client: TestClient): Promise<void> {
  await client.upload("createTable", "t", {}, rows(IDS));
  await client.call("createTableIndex", "t", { column: "vector", indexType: "IVF_FLAT" });
  await client.call("createTableScalarIndex", "t", { column: "name", indexType: "FTS" });
  await until(async () => (await client.call("listTableIndices", "t")).indexes.length === 2);
}

/** Searches that read index parts and rows. */
const SEARCHES = {
  vector: { k: 3n, vector: { singleVector: [7, 7] } },
  text: { k: 3n, vector: {}, fullTextQuery: { stringQuery: { query: "7" } } },
  filter: { k: 3n, vector: {}, filter: "id = 7" },
};

async function searchAll(client: TestClient): Promise<void> {
  for (const [name, search] of Object.entries(SEARCHES))
    assert.ok(idsOf(await client.query("t", search)).includes(7), name);
}

/** Returns what two workers share, without the threads. */
function shareAlone(): SharedDatabase {
  let version = 0;
  const catalogVersion = {
    get value() {
      return version;
    },
    raise(to: number) {
      version = Math.max(version, to);
    },
    increment: () => version++,
  };
  return {
    ...{ workers: 1, isFirst: true, catchesUp: false, calls: UNSHARED, tableUseMs: UNSHARED, catalogVersion },
    tableChanges: createChanges(),
    upstreamWrites: catalogVersion,
    commitPorts: () => () => {},
  };
}

/** Waits until the work after a call has ended, and forgets its requests. */
async function whenQuiet({ s3 }: TestCache): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve, 200));
  while (s3.take().length > 0);
}

const opened = (t: TestContext, options = {}) => startTestCache(t, { blockBytes: 128 * 1024, ...options });

test("a warm search asks the bucket only whether the catalog and the table are the newest", async (t) => {
  const cached = await opened(t);
  const client = await openClient(cached);
  await createTable(client);
  await searchAll(client);
  for (const [name, search] of Object.entries(SEARCHES)) {
    await whenQuiet(cached);
    await client.query("t", search);
    const requests = cached.s3.take().map(({ kind, key }) => `${kind} ${key.replace(/\d{20}/, "N")}`);
    assert.deepEqual(
      requests.sort(),
      ["LIST root/data/__manifest/_versions/", "LIST root/data/t.lance/_versions/"],
      name,
    );
  }
  await client.close();
});

test("a search after a restart reads rows and indices from the disk", async (t) => {
  const directory = await temporaryDirectory(t);
  const first = await opened(t, { directory });
  const client = await openClient(first);
  await createTable(client);
  await searchAll(client);
  await client.close();
  await first.close();
  const again = await opened(t, { directory, s3: first.s3 });
  const reader = await openClient(again);
  first.s3.take();
  await searchAll(reader);
  const isCacheable = ({ kind, key }: S3Request) => kind === "GET" && cacheableKindOf(key) === "data";
  assert.deepEqual(first.s3.take().filter(isCacheable), []);
  assert.ok(again.counters.get("hitsDisk") > 0);
  await reader.close();
});

test("a table that is dropped and created again, and the rows of another writer, are read as they are", async (t) => {
  const directory = await temporaryDirectory(t);
  const cached = await opened(t, { checksSignatures: true, directory });
  const client = await openClient(cached);
  // It writes without the cache.
  const writer = await openClient(cached, { cache: undefined });
  for (let round = 1; round <= 3; round += 1) {
    await writer.upload("createTable", "t", {}, rows([round, 100 + round]));
    assert.deepEqual(idsOf(await client.query("t", { k: 10n, vector: {} })), [round, 100 + round]);
    await writer.upload("insertIntoTable", "t", {}, rows([200 + round]));
    await writer.call("deleteFromTable", "t", { predicate: `id = ${round}` });
    assert.deepEqual(idsOf(await client.query("t", { k: 10n, vector: {} })).sort(), [
      100 + round,
      200 + round,
    ]);
    await writer.call("dropTable", "t");
  }
  await Promise.all([client.close(), writer.close()]);
});

test("two caches on the same files answer the same rows", async (t) => {
  const directory = await temporaryDirectory(t);
  const first = await opened(t, { directory, memoryBytes: 1 });
  // A lock keeps processes apart; without it, their blocks overwrite each other's.
  const second = await opened(t, { directory, s3: first.s3, memoryBytes: 1 });
  const [one, two] = [await openClient(first), await openClient(second)];
  await createTable(one);
  await one.upload("createTable", "u", {}, rows([1, 2, 3]));
  for (let round = 0; round < 3; round += 1) {
    await Promise.all([searchAll(one), searchAll(two)]);
    assert.deepEqual(idsOf(await two.query("u", { k: 10n, vector: {} })), [1, 2, 3]);
    assert.deepEqual(idsOf(await one.query("u", { k: 10n, vector: {} })), [1, 2, 3]);
  }
  await Promise.all([one.close(), two.close()]);
});

test("a prewarmed table is searched without reads of the bucket, by a gateway that has never read it", async (t) => {
  const writer = await opened(t);
  const client = await openClient(writer);
  await createTable(client);
  const cached = await opened(t, { s3: writer.s3, directory: await temporaryDirectory(t) });
  const backend = await openBackend(cached);
  const reader = clientOf(backend);
  const method = LanceDbService.method.prewarmData;
  const prewarm = backend.extensions?.prewarmData;
  await prewarm?.(create(method.input, {}), beginCall(method, { id: parseIdentifier("t") }));
  writer.s3.take();
  await searchAll(reader);
  const read = writer.s3
    .take()
    .filter(({ kind, key }) => kind === "GET" && cacheableKindOf(key) !== undefined);
  assert.deepEqual(read, []);
  await Promise.all([client.close(), reader.close()]);
});

test("a pinned table is read into the cache at start and after a change", async (t) => {
  const writer = await opened(t);
  const client = await openClient(writer);
  await createTable(client);
  const cached = await opened(t, { s3: writer.s3, directory: await temporaryDirectory(t) });
  const pinTimes = { lookMs: 20, searchMs: 20 };
  const backend = await openBackend(cached, { cachePins: ["t"], pinTimes });
  const reader = clientOf(backend);
  const method = LanceDbService.method.describePageCache;
  const describe = (name = "t") =>
    backend.extensions?.describePageCache?.(create(method.input, {}), beginCall(method, { id: [name] }));
  const isFull = async () => {
    const found = await describe();
    const { indexBytes = 1n, cachedIndexBytes = 0n, dataBytes = 1n, cachedDataBytes = 0n } = found ?? {};
    return found?.isPinned === true && cachedIndexBytes >= indexBytes && cachedDataBytes >= dataBytes;
  };
  await until(isFull);
  await client.upload("insertIntoTable", "t", {}, rows([5_000]));
  await until(isFull);
  // Other tables are not touched, and a property decides before the option.
  await client.upload("createTable", "u", { properties: { "lance-gateway.cache": "pin" } }, rows([1]));
  await until(async () => (await describe("u"))?.isPinned === true);
  await until(async () => ((await describe("u"))?.cachedDataBytes ?? 0n) > 0n);
  await client.upload("createTable", "v", {}, rows([1]));
  assert.equal((await describe("v"))?.isPinned, false);
  await assert.rejects(
    client.upload("createTable", "w", { properties: { "lance-gateway.cache": "on" } }, rows([1])),
    failsWith("InvalidInput"),
  );
  await Promise.all([client.close(), reader.close()]);
});

test("the cached part of a table is described, and Unsupported without a cache", async (t) => {
  const cached = await opened(t);
  const backend = await openBackend(cached);
  const client = clientOf(backend);
  const plain = await openBackend(cached, { cache: undefined });
  await createTable(client);
  const method = LanceDbService.method.describePageCache;
  const describe = (of: DirectoryBackend) =>
    of.extensions?.describePageCache?.(create(method.input, {}), beginCall(method, { id: ["t"] }));
  await searchAll(client);
  const found = await describe(backend);
  assert.ok(found !== undefined && found.cachedDataBytes > 0n && found.cachedIndexBytes > 0n);
  assert.equal(found.isPinned, false);
  await assert.rejects(async () => describe(plain), failsWith("Unsupported"));
  await Promise.all([client.close(), plain.close()]);
});

test("within the staleness, warm searches and counts ask the bucket for nothing", async (t) => {
  const cached = await opened(t);
  const client = await openClient(cached, { maxStalenessMs: 60_000 });
  await createTable(client);
  await searchAll(client);
  await whenQuiet(cached);
  await searchAll(client);
  assert.equal((await client.call("countTableRows", "t")).count, BigInt(IDS.length));
  assert.deepEqual(cached.s3.take(), []);
  await client.close();
});

test("within the staleness, a read sees what this process has changed before it, and what its headers demand", async (t) => {
  const cached = await opened(t);
  const shared = shareAlone();
  const [backend, other] = [
    await openBackend(cached, { maxStalenessMs: 60_000, shared }),
    await openClient(cached, { maxStalenessMs: 60_000, shared }),
  ];
  const client = clientOf(backend);
  const stranger = await openClient(cached);
  await client.upload("createTable", "t", {}, rows([1]));
  const idsIn = async (reader: TestClient) => idsOf(await reader.query("t", { k: 10n, vector: {} })).sort();
  for (const reader of [client, other]) for (let read = 0; read < 3; read += 1) await idsIn(reader);
  await other.upload("insertIntoTable", "t", {}, rows([2]));
  assert.deepEqual(await idsIn(client), [1, 2]);
  assert.deepEqual(await idsIn(other), [1, 2]);
  await client.call("deleteFromTable", "t", { predicate: "id = 1" });
  assert.deepEqual(await idsIn(other), [2]);
  for (let read = 0; read < 3; read += 1) await idsIn(client);
  await stranger.upload("insertIntoTable", "t", {}, rows([3]));
  assert.deepEqual(await idsIn(client), [2]);
  const { countTableRows: method } = LanceNamespaceService.method;
  const headers = { "x-lancedb-min-timestamp": new Date().toISOString() };
  const call = beginCall(method, { id: ["t"], headers });
  assert.equal((await backend.operations.countTableRows?.(create(method.input, {}), call))?.count, 2n);
  assert.deepEqual(await idsIn(client), [2, 3]);
  await client.call("dropTable", "t");
  await client.upload("createTable", "t", {}, rows([9]));
  assert.deepEqual(await idsIn(other), [9]);
  await Promise.all([client.close(), other.close(), stranger.close()]);
});

test("a search that begins before the newest version is known never answers from an older one", async (t) => {
  const cached = await opened(t);
  const [client, writer] = [await openClient(cached), await openClient(cached, { cache: undefined })];
  await writer.upload("createTable", "t", {}, rows([0]));
  for (let id = 1; id <= 5; id += 1) {
    // The second one finds nothing new, so that the next one begins early.
    for (let read = 0; read < 2; read += 1) await client.query("t", { k: 10n, vector: {} });
    await writer.upload("insertIntoTable", "t", {}, rows([id]));
    const [answer, count] = await Promise.all([
      client.query("t", { k: 10n, vector: {} }),
      client.call("countTableRows", "t"),
    ]);
    assert.equal(idsOf(answer).length, id + 1);
    assert.equal(count.count, BigInt(id + 1));
  }
  await client.query("t", { k: 10n, vector: {} });
  await writer.call("dropTable", "t");
  await assert.rejects(client.query("t", { k: 10n, vector: {} }), failsWith("TableNotFound"));
  await Promise.all([client.close(), writer.close()]);
});

test("the first search after a restart asks the bucket only for the newest version of the table", async (t) => {
  const directory = await temporaryDirectory(t);
  const first = await opened(t, { directory });
  const client = await openClient(first);
  await createTable(client);
  await searchAll(client);
  await client.close();
  await first.close();
  const again = await opened(t, { directory, s3: first.s3 });
  const reader = await openClient(again);
  await whenQuiet(again);
  await reader.query("t", SEARCHES.filter);
  const requests = again.s3.take().map(({ kind, key }) => `${kind} ${key.replace(/\d{20}/, "N")}`);
  assert.deepEqual(requests.sort(), [
    "GET root/data/t.lance/_versions/N.manifest",
    "LIST root/data/__manifest/_versions/",
    "LIST root/data/t.lance/_deletions/",
    // Of the gateway, and of the engine.
    "LIST root/data/t.lance/_versions/",
    "LIST root/data/t.lance/_versions/",
  ]);
  await reader.close();
});
