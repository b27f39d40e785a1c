import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { type ErrorName, isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { createEngine } from "../../engine/engine.ts";
import { RefusedRequest } from "../../format/decisive-request.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { keyIn, type ObjectStore } from "../../format/storage.ts";
import type { Bucket } from "../../stores/bucket.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";
import { type Catalog, createCatalog } from "../catalog.ts";
import { createManifestTable, MANIFEST_NAME } from "../manifest/manifest-table.ts";

/** Fault of a request: it succeeds and the answer is lost, or it fails for one of several reasons. */
type Fault = "answer lost" | "timed out" | "throttled" | "denied" | "busy";

/** Draws the fault of a request; undefined for none. */
type Weather = (request: "create" | "put" | "get", key: string) => Fault | undefined;

const FAILURES: Readonly<Record<Exclude<Fault, "busy">, ErrorName>> = {
  "answer lost": "ServiceUnavailable",
  "timed out": "ServiceUnavailable",
  throttled: "Throttling",
  denied: "ServiceUnavailable",
};

/** Failures by which the storage says that it has not carried a request out. */
const REFUSALS: readonly Fault[] = ["throttled", "denied"];

function failure(fault: Exclude<Fault, "busy">): LanceError {
  const Kind = REFUSALS.includes(fault) ? RefusedRequest : LanceError;
  return new Kind(FAILURES[fault], `the storage: ${fault}`);
}

/** Creates an object store without features of disks, whose objects are files that the engine also finds. */
function createFakeStore(weather: Weather): ObjectStore {
  const disk = createLocalStore();
  async function through<T>(request: "put" | "get", key: string, work: () => Promise<T>): Promise<T> {
    const fault = weather(request, key);
    const result = fault === undefined || fault === "answer lost" ? await work() : undefined;
    if (fault !== undefined && fault !== "busy") throw failure(fault);
    return result as T;
  }
  const plain = createDiskBucket(disk);
  const bucket: Bucket = {
    ...plain,
    get: (key) => through("get", key, () => plain.get(key)),
    put: (key, bytes) => through("put", key, () => plain.put(key, bytes)),
    async create(key, bytes, attempts) {
      const fault = weather("create", key);
      if (fault === "busy") return "busy";
      if (fault === "denied") throw failure(fault);
      if (fault === "throttled" || fault === "timed out") return { unclear: failure(fault) };
      const outcome = await plain.create(key, bytes, attempts);
      return fault === "answer lost" ? { unclear: failure(fault) } : outcome;
    },
  };
  return { ...createRemoteStore(bucket), uriOf: disk.uriOf, keyOf: disk.keyOf };
}

async function createWorld(t: TestContext) {
  const base = await temporaryDirectory(t);
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  const manifest = join(base, MANIFEST_NAME);
  const open = (weather: Weather = () => undefined) => {
    const store = createFakeStore(weather);
    return createCatalog(createManifestTable(base, engine, store), silent, { maintenance: false });
  };
  const declare = (catalog: Catalog, id: string, by: string) =>
    catalog.mutate((draft) => {
      if (draft.get(id) !== undefined) throw new LanceError("TableAlreadyExists", id);
      draft.put({ objectId: id, objectType: "table", location: `${id}.lance`, properties: { by } });
    });
  await declare(open(), "first", "setup");
  return {
    open,
    declare,
    versionKey: (version: bigint) =>
      keyIn(manifest.slice(1), `_versions/${String(2n ** 64n - 1n - version).padStart(20, "0")}.manifest`),
    files: async (directory: string) => (await readdir(join(manifest, directory))).sort(),
    state: () => open().read(),
  };
}

/** Gives faults to the requests on versions, in order. */
const onVersions = (faults: (Fault | undefined)[]): Weather => {
  return (request, key) => (request === "create" && key.endsWith(".manifest") ? faults.shift() : undefined);
};

test("counts a commit whose answer is lost once, and acknowledges it", async (t) => {
  const { open, declare, state, files } = await createWorld(t);
  const faults: (Fault | undefined)[] = [];
  const catalog = open(onVersions(faults));
  for (const [i, weather] of (
    [["answer lost"], ["timed out", "answer lost"], ["busy", "throttled"]] as const
  ).entries()) {
    faults.push(...weather);
    await declare(catalog, `t${i}`, "ours");
    assert.deepEqual(faults, []);
  }
  assert.equal((await state()).size, 4);
  assert.equal((await files("_versions")).filter((name) => name.endsWith(".manifest")).length, 2 + 3);
});

test("does not take a version of another writer for its own after losing an answer", async (t) => {
  const { open, declare, state, files } = await createWorld(t);
  const other = open();
  let raced = false;
  const faults: Fault[] = [];
  const catalog = open((request, key) => {
    if (request === "create" && key.endsWith(".manifest") && !raced) {
      raced = true;
      faults.push("timed out");
    }
    return request === "create" ? faults.shift() : undefined;
  });
  // Between the attempt that timed out and the next one, the other process takes the number and the name.
  await catalog.read();
  const [ours, theirs] = await Promise.allSettled([
    declare(catalog, "t", "ours"),
    declare(other, "t", "theirs"),
  ]);
  assert.ok((ours.status === "fulfilled") !== (theirs.status === "fulfilled"));
  const winner = ours.status === "fulfilled" ? "ours" : "theirs";
  const now = await state();
  assert.deepEqual(now.get("t")?.properties, { by: winner });
  assert.equal(now.addressesOf("t")?.length, 1);
  assert.equal((await files("data")).length, 2, "the loser's file is gone");
});

test("reports a storage that throttles or does not answer, and leaves nothing half done", async (t) => {
  const { open, declare, state } = await createWorld(t);
  for (const [fault, kind, error] of [
    ["throttled", ".manifest", "Throttling"],
    ["throttled", "data/", "Throttling"],
    ["timed out", "data/", "ServiceUnavailable"],
    ["denied", ".manifest", "ServiceUnavailable"],
  ] as const) {
    let isBad = true;
    const catalog = open((request, key) =>
      isBad && request !== "get" && key.includes(kind) ? fault : undefined,
    );
    await assert.rejects(declare(catalog, "never", "ours"), failsWith(error), `${fault} ${kind}`);
    isBad = false;
    await declare(catalog, `${fault} ${kind}`, "ours");
  }
  const there = [...(await state()).descendants("")].sort();
  assert.deepEqual(there, [
    "denied .manifest",
    "first",
    "throttled .manifest",
    "throttled data/",
    "timed out data/",
  ]);
});

test("finds a commit with an unknown outcome at the next one", async (t) => {
  const { open, declare, state } = await createWorld(t);
  let away = true;
  const faults: Fault[] = ["answer lost"];
  const catalog = open((request, key) => {
    if (!away || !key.endsWith(".manifest")) return undefined;
    return request === "create" ? (faults.shift() ?? "denied") : "timed out";
  });
  await assert.rejects(declare(catalog, "t", "ours"), failsWith("OutcomeUnknown"));
  away = false;
  await assert.rejects(declare(catalog, "t", "again"), failsWith("TableAlreadyExists"));
  assert.deepEqual((await state()).get("t")?.properties, { by: "ours" });
});

test("decides again when another process was faster, and leaves no file of the first attempt", async (t) => {
  const { open, declare, state, files } = await createWorld(t);
  const [catalog, other] = [open(), open()];
  for (const name of ["a", "b"]) await declare(catalog, name, "ours");
  await declare(other, "c", "theirs");
  await declare(catalog, "d", "ours");
  assert.equal((await files("data")).length, 1 + 4, "each commit has one file");
  await declare(catalog, "e", "ours");
  // The state in memory is old: it has the first name, and not the second one.
  await other.mutate((draft) => {
    draft.delete("a");
  });
  await declare(catalog, "a", "ours again");
  await declare(other, "f", "theirs");
  await assert.rejects(declare(catalog, "f", "ours"), failsWith("TableAlreadyExists"));
  const now = await state();
  assert.deepEqual([...now.descendants("")].sort(), ["a", "b", "c", "d", "e", "f", "first"]);
  assert.deepEqual(now.get("a")?.properties, { by: "ours again" });
});

test("loses no acknowledged commit of several writers on a bad link, and duplicates none", async (t) => {
  const { open, declare, state } = await createWorld(t);
  let count = 0;
  // Each third request on a version fails, with the kinds of faults in turn.
  const faults: readonly Fault[] = ["answer lost", "busy", "timed out", "throttled"];
  const weather: Weather = (request, key) =>
    request === "create" && key.endsWith(".manifest") && ++count % 3 === 0
      ? faults[(count / 3) % faults.length]
      : undefined;
  const writers = Array.from({ length: 3 }, () => open(weather));
  const names = Array.from({ length: 12 }, (_, i) => `t${i}`);
  const answers: string[][] = [];
  for (const name of names) {
    const outcomes = await Promise.allSettled(writers.map((writer, i) => declare(writer, name, String(i))));
    const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    assert.ok(errors.every((error) => isLanceError(error, "TableAlreadyExists")));
    answers.push(outcomes.flatMap(({ status }, i) => (status === "fulfilled" ? [String(i)] : [])));
  }
  const now = await state();
  assert.equal(now.size, 1 + names.length);
  for (const [i, name] of names.entries()) assert.deepEqual(answers[i], [now.get(name)?.properties["by"]]);
  assert.ok(count >= 4 * 3);
});
