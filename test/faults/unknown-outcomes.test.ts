import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { tableFromIPC, tableToIPC } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { UnsyncedError } from "../../src/backends/dir/format/local/local-errors.ts";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { FileFeatures, ObjectStore } from "../../src/backends/dir/format/storage.ts";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import type { Bucket } from "../../src/backends/dir/stores/bucket.ts";
import { createRemoteStore } from "../../src/backends/dir/stores/remote-store.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { LANCEDB } from "../dialects/remote-calls.ts";
import { silent, temporaryDirectory } from "../fixtures/dir/directory-backend.ts";
import { rows } from "../fixtures/dir/rows.ts";
import { createDiskBucket } from "../support/disk-bucket.ts";
import { jsonOf, type RawAnswer, sendHttp } from "../support/http.ts";
import { startServer } from "../support/server.ts";

/** The statuses after which LanceDB's remote clients repeat a change, and the number of their requests. */
const REPEATED = [409, 429, 500, 502, 503, 504];
const REQUESTS = 3;

/** The storage of a test. */
interface Faulty {
  readonly store: ObjectStore;
  /** Size of the parts of an upload, in bytes. Default: the usual one. */
  readonly partBytes?: number;
}

/** Opens a storage that fails while `isFailing` is true, given the directory of the table `t`. */
type Open = (directory: string, isFailing: () => boolean) => Faulty;

const versionsIn = (directory: string) =>
  readdirSync(join(directory, "_versions")).filter((name) => name.endsWith(".manifest")).length;

const noAnswer = () => new LanceError("ServiceUnavailable", "the storage does not answer");

/** A disk whose features of files fail once the table has a second version. */
function onDisk(failure: () => Error, method: "syncObjects" | "get"): Open {
  return (directory, isFailing) => {
    const disk = createLocalStore();
    const check = (key: string) => {
      if (isFailing() && key.includes("t.lance") && versionsIn(directory) > 1) throw failure();
    };
    const files: FileFeatures = {
      ...(disk.files as FileFeatures),
      async syncObjects(keys, within) {
        if (method === "syncObjects") check(`${within}/${keys.join("/")}`);
        return disk.files?.syncObjects(keys, within);
      },
    };
    const getTail: ObjectStore["getTail"] = async (key, length) => {
      if (method === "get") check(key);
      return disk.getTail(key, length);
    };
    return { store: { ...disk, files, getTail } };
  };
}

/** A bucket that carries out the commit of a version, and neither says so nor answers other requests for it. */
const silentBucket: Open = (_, isFailing) => {
  const disk = createLocalStore();
  const plain = createDiskBucket(disk);
  const fails = (key: string) => isFailing() && key.includes("t.lance/_versions/");
  const bucket: Bucket = {
    ...plain,
    async create(key, bytes, attempts) {
      const outcome = await plain.create(key, bytes, attempts);
      return fails(key) ? { unclear: noAnswer() } : outcome;
    },
    async get(key) {
      if (fails(key)) throw noAnswer();
      return plain.get(key);
    },
  };
  const store = { ...createRemoteStore(bucket), uriOf: disk.uriOf, keyOf: disk.keyOf };
  return { store, partBytes: 10_000 };
};

const STORAGES: Readonly<Record<string, Open>> = {
  "the disk fails to sync an insert": onDisk(() => new UnsyncedError(new Error("EIO")), "syncObjects"),
  "the disk cannot be read after an insert": onDisk(noAnswer, "get"),
  "a bucket does not answer the commit of an insert": silentBucket,
};

/** Starts a gateway with a table `t`, whose storage fails during the first request of each change. */
async function startFaulty(t: TestContext, open: Open) {
  const root = await temporaryDirectory(t);
  let isFailing = false;
  const { store, partBytes } = open(join(root, "data", "t.lance"), () => isFailing);
  const storage = {
    store,
    root: store.files === undefined ? store.keyOf(root) : root,
    engineOptions: {},
  };
  const backend = await createDirectoryBackend({ root, storage, log: silent, uploadPartBytes: partBytes });
  const { port, close } = await startServer(backend);
  t.onTestFinished(close);
  const post = (path: string, body?: Uint8Array | string) =>
    sendHttp(port, { path: `/v1/table/t/${path}`, headers: LANCEDB, ...(body !== undefined && { body }) });

  /** Makes a change as LanceDB's clients do. */
  async function change(path: string, body: Uint8Array): Promise<RawAnswer> {
    isFailing = true;
    let answer = await post(path, body);
    isFailing = false;
    for (let sent = 1; sent < REQUESTS && REPEATED.includes(answer.status); sent++)
      answer = await post(path, body);
    return answer;
  }
  return { post, change, count: async () => Number((await post("count_rows/", "{}")).bytes.toString()) };
}

const COUNT = 2000;

/** A body of two batches; a long upload is cut between them. */
function body(): Uint8Array {
  const half = rows(Array.from({ length: COUNT / 2 }, (_, id) => id));
  return tableToIPC(tableFromIPC(half).concat(tableFromIPC(half)), "stream");
}

for (const [what, open] of Object.entries(STORAGES)) {
  test(`a client that repeats failed changes stores rows once when ${what}`, async (t) => {
    const { post, change, count } = await startFaulty(t, open);
    assert.equal((await post("create/", rows([1, 2]))).status, 200);
    const answer = await change("insert/", body());
    assert.deepEqual([answer.status, jsonOf(answer)["type"]], [520, "/errors/outcome-unknown"]);
    assert.equal(await count(), 2 + COUNT);
  });
}
