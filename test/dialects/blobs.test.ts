import assert from "node:assert/strict";
import { join } from "node:path";
import {
  Binary,
  Field,
  Int32,
  LargeBinary,
  Schema,
  Table,
  tableFromIPC,
  tableToIPC,
  vectorFromArray,
} from "apache-arrow";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it, onTestFinished } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import type { DirectoryBackendOptions } from "../../src/backends/dir/options.ts";
import { createSteppingStore } from "../faults/power/stepping-store.ts";
import { type BlobRow, blobStream, patternBytes } from "../fixtures/dir/blobs.ts";
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
    async send(path: string, body: Uint8Array) {
      const { status, bytes } = await send(path, ARROW, body);
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

const LEGACY = new Map([["lance-encoding:blob", "true"]]);

/** Returns a stream with a batch for each row, whose blobs are plain bytes. */
function bytesStream(rows: readonly BlobRow[], type: Binary | LargeBinary, metadata?: Map<string, string>) {
  const schema = new Schema([new Field("id", new Int32(), true), new Field("blob", type, true, metadata)]);
  const batches = rows.flatMap(({ id, blob }) => {
    const columns = { id: vectorFromArray([id], new Int32()), blob: vectorFromArray([blob], type) };
    return new Table(schema, columns).batches;
  });
  return tableToIPC(new Table(schema, batches), "stream");
}

describe("blobs that come as bytes", () => {
  const more: readonly BlobRow[] = [10, 11, 12].map((id) => ({ id, blob: patternBytes(id) }));

  async function startFor(options: Partial<DirectoryBackendOptions> = {}) {
    const { path: root, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const server = await startBlobServer({ root, ...options });
    onTestFinished(server.close);
    return server;
  }
  type Server = Awaited<ReturnType<typeof startFor>>;

  /** Checks that a table has exactly these blobs, in its blob column. */
  async function expectBlobs(server: Server, rows: readonly BlobRow[]) {
    const { schema } = jsonOf(await server.post("describe/", {})) as {
      schema: { fields: { name: string; metadata?: Record<string, string> }[] };
    };
    const column = schema.fields.find(({ name }) => name === "blob");
    assert.deepEqual(column?.metadata, { "ARROW:extension:name": "lance.blob.v2" });
    const query = { vector: [], k: 100, columns: ["id"], with_row_id: true };
    const found = tableFromIPC((await server.post("query/", query)).bytes).toArray();
    const blobs = await server.fetch(found.map(({ _rowid }) => Number(_rowid)));
    const byId = new Map(found.map(({ id }, i) => [id, blobs[i]]));
    assert.equal(byId.size, rows.length);
    for (const { id, blob } of rows) {
      const is = byId.get(id);
      assert.ok(blob === null ? is === null : is?.equals(blob as Uint8Array), `row ${id}`);
    }
  }

  for (const [form, options] of [
    ["in one part", {}],
    ["in several parts", { uploadPartBytes: 50_000 }],
  ] as const) {
    it(`become blobs when a table is created with a legacy column, ${form}`, async () => {
      const server = await startFor(options);
      for (const mode of ["create", "overwrite", "exist_ok"]) {
        await server.send(`create?mode=${mode}`, bytesStream(ROWS, new LargeBinary(), LEGACY));
        await expectBlobs(server, ROWS);
      }
      await server.send("insert?mode=overwrite", bytesStream(more, new LargeBinary(), LEGACY));
      await expectBlobs(server, more);
    });

    it(`are inserted into a blob column, ${form}`, async () => {
      const server = await startFor(options);
      await server.upload("create", ROWS);
      const added = [new Binary(), new LargeBinary()].map((type, at) => {
        const rows = more.map(({ id, blob }) => ({ id: id + 10 * at, blob }));
        return { rows, stream: bytesStream(rows, type) };
      });
      const legacy = ROWS.map(({ id, blob }) => ({ id: id + 100, blob }));
      added.push({ rows: legacy, stream: bytesStream(legacy, new LargeBinary(), LEGACY) });
      for (const { stream } of added) await server.send("insert", stream);
      await expectBlobs(server, [...ROWS, ...added.flatMap(({ rows }) => rows)]);
    });

    it(`give a declared table a blob column, ${form}`, async () => {
      const server = await startFor(options);
      assert.equal((await server.post("declare/", {})).status, 200);
      await server.send("insert", bytesStream(ROWS, new LargeBinary(), LEGACY));
      await expectBlobs(server, ROWS);
    });
  }

  it("are merged into a blob column, and into a declared table", async () => {
    const server = await startFor();
    const merge = "merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true";
    assert.equal((await server.post("declare/", {})).status, 200);
    await server.send(merge, bytesStream(ROWS, new LargeBinary(), LEGACY));
    await expectBlobs(server, ROWS);
    const changed = [...more, { id: 0, blob: Buffer.from("new") }];
    await server.send(merge, bytesStream(changed, new Binary()));
    await expectBlobs(server, [...ROWS.slice(1), ...changed]);
  });

  it("become blobs from a legacy column of 32-bit offsets", async () => {
    const server = await startFor();
    await server.send("create", bytesStream(ROWS, new Binary(), LEGACY));
    await expectBlobs(server, ROWS);
  });

  it("may come for a legacy column that is added to a table with blobs", async () => {
    const server = await startFor();
    await server.upload("create", more);
    const schema = new Schema([new Field("added", new LargeBinary(), true, LEGACY)]);
    await server.send("add_columns", tableToIPC(new Table(schema), "stream"));
    const { schema: described } = jsonOf(await server.post("describe/", {})) as {
      schema: { fields: { name: string; metadata?: Record<string, string> }[] };
    };
    const column = described.fields.find(({ name }) => name === "added");
    assert.deepEqual(column?.metadata, { "ARROW:extension:name": "lance.blob.v2" });
  });
});
