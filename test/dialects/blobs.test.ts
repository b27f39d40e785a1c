import assert from "node:assert/strict";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it, onTestFinished } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { type BlobRow, blobStream, patternBytes } from "../../src/backends/dir/operations/blobs/fixture.ts";
import type { DirectoryBackendOptions } from "../../src/backends/dir/options.ts";
import { createSteppingStore } from "../faults/power/stepping-store.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { startServer } from "../support/server.ts";

const LANCEDB = { "user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "db" };
const ARROW = { "content-type": "application/vnd.apache.arrow.stream" };

/** More than the server reads at a time. */
const LARGE = patternBytes(9 * 1024 * 1024 + 5);

const ROWS: readonly BlobRow[] = [
  { id: 0, blob: Buffer.from("alpha") },
  { id: 1, blob: null },
  { id: 2, blob: Buffer.alloc(0) },
  { id: 3, blob: LARGE },
  { id: 4, blob: patternBytes(100_000) },
];

/** Starts a gateway, and returns the calls of a client of LanceDB to the table `t`. */
async function startBlobServer(options: Partial<DirectoryBackendOptions> & { readonly root: string }) {
  const backend = await createDirectoryBackend({ log: pino({ level: "silent" }), ...options });
  const server = await startServer(backend);
  const send = (path: string, headers: Record<string, string>, body?: string | Uint8Array) =>
    sendHttp(server.port, {
      path: `/v1/table/t/${path}`,
      headers: { ...LANCEDB, ...headers },
      ...(body === undefined ? { method: "GET" } : { body }),
    });
  return {
    close: server.close,
    async upload(operation: "create" | "insert", rows: readonly BlobRow[]) {
      const { status, bytes } = await send(operation, ARROW, blobStream(rows));
      assert.equal(status, 200, bytes.toString());
    },
    post: (path: string, json: unknown) => send(path, {}, JSON.stringify(json)),
    get: (path: string, headers: Record<string, string> = {}) => send(path, headers),
    async fetch(rowIds: readonly number[], more: object = {}) {
      const answer = await send(
        "fetch_blobs/",
        {},
        JSON.stringify({ column: "blob", row_ids: rowIds, ...more }),
      );
      assert.equal(answer.status, 200, answer.bytes.toString());
      return tableFromIPC(answer.bytes)
        .toArray()
        .map(({ blob }) => (blob === null ? null : Buffer.from(blob as Uint8Array)));
    },
  };
}

describe("blobs of LanceDB's clients", () => {
  let server: Awaited<ReturnType<typeof startBlobServer>>;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    const directory = await temporaryDirectory();
    remove = directory.remove;
    server = await startBlobServer({ root: directory.path });
    await server.upload("create", ROWS);
  });
  afterAll(async () => {
    await server.close();
    await remove();
  });

  it("come in the order of the row ids, each as often as it is asked for", async () => {
    const [large, alpha, again, none, empty, last] = await server.fetch([3, 0, 0, 1, 2, 4]);
    assert.ok(large?.equals(LARGE));
    assert.deepEqual([alpha, again, none, empty], [ROWS[0]?.blob, ROWS[0]?.blob, null, ROWS[2]?.blob]);
    assert.ok(last?.equals(ROWS[4]?.blob as Uint8Array));
    assert.deepEqual(await server.fetch([]), []);
  });

  it("are read in ranges, with the size of the whole and the version", async () => {
    const { status, headers, bytes } = await server.get("blob/blob/3/bytes", {
      range: "bytes=5000000-9000009",
    });
    assert.equal(status, 206);
    assert.equal(headers["content-range"], `bytes 5000000-9000009/${LARGE.byteLength}`);
    assert.equal(headers["content-length"], "4000010");
    assert.equal(headers["x-lancedb-version"], "1");
    assert.ok(bytes.equals(LARGE.subarray(5_000_000, 9_000_010)));
  });

  it("are read whole without a range, and with several ranges", async () => {
    for (const range of [undefined, "bytes=0-1,4-5"]) {
      const answer = await server.get("blob/blob/3/bytes", range === undefined ? {} : { range });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["accept-ranges"], "bytes");
      assert.ok(answer.bytes.equals(LARGE));
    }
  });

  it("tell a row without a blob from an empty blob", async () => {
    const none = await server.get("blob/blob/1/bytes", { range: "bytes=0-0" });
    assert.deepEqual([none.status, none.bytes.byteLength], [204, 0]);
    const empty = await server.get("blob/blob/2/bytes", { range: "bytes=0-0" });
    assert.deepEqual([empty.status, empty.headers["content-range"]], [416, "bytes */0"]);
    const whole = await server.get("blob/blob/2/bytes");
    assert.deepEqual([whole.status, whole.bytes.byteLength], [200, 0]);
  });

  it("are not read through the descriptor of another table", async () => {
    const source = "source_uri=file%3A%2F%2F%2Ftmp%2Fother.lance&row_is_address=false&source_commit_micros=1";
    const answer = await server.get(`blob/blob/0/bytes?version=1&${source}`);
    assert.equal(answer.status, 406);
    assert.match(String(jsonOf(answer)["error"]), /another table/);
  });

  it("refuse a range behind the end, and say how many bytes there are", async () => {
    const answer = await server.get("blob/blob/0/bytes", { range: "bytes=5-" });
    assert.deepEqual([answer.status, answer.headers["content-range"]], [416, "bytes */5"]);
    assert.equal(jsonOf(answer)["type"], "/errors/range-not-satisfiable");
  });

  it("refuse other columns and rows that do not exist", async () => {
    for (const [path, json] of [
      ["fetch_blobs", { column: "id", row_ids: [0] }],
      ["fetch_blobs", { column: "missing", row_ids: [0] }],
      ["fetch_blobs", { column: "blob", row_ids: [0, 77] }],
      ["fetch_blobs", { column: "blob", row_ids: [2 ** 40] }],
    ] as const) {
      const answer = await server.post(path, json);
      assert.equal(answer.status, 400, JSON.stringify(json));
    }
    for (const path of ["blob/id/0/bytes", "blob/missing/0/bytes", "blob/blob/77/bytes"]) {
      assert.equal((await server.get(path)).status, 400, path);
    }
  });

  it("cannot be changed by an expression, which no client repeats", async () => {
    const answer = await server.post("update/", { predicate: "id = 0", updates: [["blob", "null"]] });
    assert.equal(answer.status, 406);
    assert.match(answer.bytes.toString(), /Direct updates to column 'blob'/);
  });

  it("cannot name files outside of the table", async () => {
    const rows = [{ id: 9, blob: "file:///etc/hostname" }];
    await assert.rejects(server.upload("insert", rows), /External blob URI/);
  });

  it("are read at the version that is asked for", async () => {
    assert.equal((await server.post("delete/", { predicate: "id = 0" })).status, 200);
    assert.equal((await server.post("fetch_blobs/", { column: "blob", row_ids: [0] })).status, 400);
    assert.deepEqual(await server.fetch([0], { version: 1 }), [ROWS[0]?.blob]);
    assert.equal((await server.get("blob/blob/0/bytes?version=1")).bytes.toString(), "alpha");
  });
});

describe("blobs in uploads of several parts", () => {
  for (const storage of ["disk", "bucket"] as const) {
    it(`survive on a ${storage}`, async () => {
      const { path: root, remove } = await temporaryDirectory();
      onTestFinished(remove);
      const base = join(root, "catalog");
      const server = await startBlobServer({
        root: base,
        uploadPartBytes: 100_000,
        ...(storage === "bucket" && { storage: createSteppingStore(base).storage }),
      });
      onTestFinished(server.close);
      const blobs = Array.from({ length: 6 }, (_, i) => patternBytes(70_000 + i));
      const rows = blobs.map((blob, id) => ({ id, blob }));
      await server.upload("create", rows);
      await server.upload("insert", rows);
      const { headers, status } = await server.get("blob/blob/5/bytes", { range: "bytes=0-0" });
      assert.deepEqual([status, headers["content-range"]], [206, "bytes 0-0/70005"]);
      const found = await server.fetch([0, 1, 2, 3, 4, 5]);
      assert.deepEqual(
        found.map((blob) => blob?.byteLength),
        blobs.map((blob) => blob.byteLength),
      );
    });
  }
});
