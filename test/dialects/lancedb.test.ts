import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { Field, Int32, Schema, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { otherStream, people, personStream } from "../support/arrow.ts";
import { jsonOf, type RawAnswer, sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** The part of a description that the tests read. */
interface Described {
  readonly version: number;
  readonly schema: { readonly fields: readonly { readonly name: string; readonly type: object }[] };
}

const LANCEDB = { "user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "db" };
const ARROW = { "content-type": "application/vnd.apache.arrow.stream" };

describe("LanceDB's dialect over a directory", () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer();
    await upload("t/create/", personStream(people(3)));
  });
  afterAll(() => server.close());

  /** Sends JSON, or nothing, to a path below the tables. */
  const call = (path: string, json?: unknown, headers: Record<string, string> = LANCEDB) =>
    sendHttp(server.port, {
      path: `/v1/table/${path}`,
      headers,
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
  const upload = (path: string, body: Uint8Array, headers: Record<string, string> = LANCEDB) =>
    sendHttp(server.port, { path: `/v1/table/${path}`, headers: { ...headers, ...ARROW }, body });

  async function answered<T = Record<string, never>>(answer: Promise<RawAnswer>): Promise<T> {
    const { status, bytes } = await answer;
    assert.equal(status, 200, bytes.toString());
    return JSON.parse(bytes.toString()) as T;
  }
  async function refused(answer: Promise<RawAnswer>, name: ErrorName, status?: number): Promise<void> {
    const { code, httpStatus } = errorEntry(name);
    const got = await answer;
    const body = jsonOf(got);
    assert.deepEqual([got.status, body["status"], body["code"]], [status ?? httpStatus, got.status, code]);
  }
  const count = (table: string) => answered<number>(call(`${table}/count_rows/`, { version: null }));

  it("names what its clients may use, to them only", async () => {
    assert.equal((await call("t/describe/")).headers["phalanx-version"], "0.5.0");
    assert.equal((await call("missing/describe/")).headers["phalanx-version"], "0.5.0");
    assert.equal((await call("t/describe", {}, {})).headers["phalanx-version"], undefined);
  });

  it("describes with the version and Lance's types, and without to others", async () => {
    const { version, schema } = await answered<Described>(call("t/describe/"));
    assert.equal(version, 1);
    assert.deepEqual(schema.fields[1]?.type, { type: "string" });
    const other = await answered(call("t/describe", {}, {}));
    assert.equal(other["schema"], undefined);
  });

  it("has its own status for a table that is there", async () => {
    const again = (headers: Record<string, string>) => upload("t/create", personStream([]), headers);
    await refused(again(LANCEDB), "TableAlreadyExists", 400);
    await refused(again({}), "TableAlreadyExists");
  });

  it("lists bare tags, and wrapped ones to others", async () => {
    await answered(call("t/tags/create/", { tag: "tags", version: 1 }));
    const tags = await answered<Record<string, { version: number }>>(call("t/tags/list/"));
    assert.equal(tags["tags"]?.version, 1);
    const wrapped = await answered<{ tags: object }>(call("t/tags/list", undefined, {}));
    assert.deepEqual(wrapped.tags, tags);
  });

  it("adds columns by an Arrow schema", async () => {
    await answered(upload("cols/create/", personStream(people(2))));
    const added = tableToIPC(new Table(new Schema([new Field("age", new Int32(), true)])), "stream");
    assert.equal((await answered(upload("cols/add_columns/", added)))["version"], 2);
    const { schema } = await answered<Described>(call("cols/describe/"));
    assert.equal(schema.fields.at(-1)?.name, "age");
    await refused(upload("cols/add_columns/", added), "TableSchemaValidationError");
    await refused(upload("cols/add_columns/", otherStream()), "InvalidInput");
  });

  it("builds an index again, unless the client forbids to replace it", async () => {
    await answered(upload("indexed/create/", personStream(people(3))));
    const build = (more: object = {}) =>
      call("indexed/create_index/", { column: "id", index_type: "BTREE", ...more });
    const uuids = async () => {
      const { indexes } = await answered<{ indexes: { index_uuid: string }[] }>(
        call("indexed/index/list/", {}),
      );
      return indexes.map(({ index_uuid: uuid }) => uuid);
    };
    await answered(build({ replace: false }));
    const first = await uuids();
    assert.match(first.join(), /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    await refused(build({ replace: false }), "TableIndexAlreadyExists", 400);
    assert.deepEqual(await uuids(), first);
    await answered(build());
    assert.notDeepEqual(await uuids(), first);
  });

  it("has statuses that its clients do not repeat for missing versions and for limits of time", async () => {
    await refused(call("t/tags/create/", { tag: "late", version: 99 }), "TableVersionNotFound", 400);
    await refused(call("t/tags/update/", { tag: "tags", version: 99 }), "TableVersionNotFound", 400);
    const merge = (headers: Record<string, string>) => {
      const limited = { ...headers, "x-request-timeout-ms": "0" };
      return upload("t/merge_insert/?on=id&when_matched_update_all=true", personStream(people(3)), limited);
    };
    await refused(merge(LANCEDB), "DeadlineExceeded", 408);
    await refused(merge({}), "DeadlineExceeded", 504);
  });

  it("answers with the texts and statuses by which its clients choose an error", async () => {
    await refused(call("t/tags/version/", { tag: "never" }), "TableTagNotFound", 404);
    const query = { k: 1, vector: [1, 2, 3], vector_column: "vector" };
    const answer = await call("t/query/", query);
    assert.equal(answer.status, 400);
    assert.match(answer.bytes.toString(), /query dim\(3\) doesn't match the column vector vector dim\(2\)/);
  });

  it("takes JSON as text", async () => {
    const json = new Map([["ARROW:extension:name", "arrow.json"]]);
    const documents = (texts: readonly string[], metadata = json) => {
      const fields = [new Field("doc", new Utf8(), true, metadata)];
      return tableToIPC(
        new Table(new Schema(fields), { doc: vectorFromArray([...texts], new Utf8()) }),
        "stream",
      );
    };
    await answered(upload("docs/create/", documents(['{"n": 1}'])));
    await answered(upload("docs/insert/", documents(['{"n": 2}'])));
    await answered(upload("docs/insert/", documents(['{"n": 3}'], new Map())));
    await answered(
      upload("docs/merge_insert/?on=doc&when_not_matched_insert_all=true", documents(['{"n": 4}'])),
    );
    await refused(upload("docs/insert/", documents(["{nope"])), "InvalidInput");
    const predicate = "json_get_int(doc, 'n') > 1";
    assert.equal(await answered(call("docs/count_rows/", { predicate })), 3);
    await refused(upload("docs/insert/", personStream(people(1))), "TableSchemaValidationError");
  });

  it("refuses fields of newer clients that would be without effect", async () => {
    const query = { vector: [1, 0], k: 1 };
    const field = { search_effort: 0.5 };
    await refused(call("t/query/", { ...query, ...field }), "Unsupported");
    await refused(call("t/explain_plan/", { query: { ...query, ...field } }), "Unsupported");
    await refused(call("t/analyze_plan/", { ...query, ...field }), "Unsupported");
    assert.equal((await call("t/query/", { ...query, search_effort: null })).status, 200);
  });

  const UNSERVED = [
    ["POST", "/v1/table/t/flush_lsm/"],
    ["POST", "/v1/table/t/errors"],
    ["POST", "/v1/functions/create"],
    ["POST", "/v1/function/f/rename"],
    ["GET", "/v1/namespace/$/function/list"],
    ["POST", "/v1/view/v/rename"],
    ["GET", "/v1/namespace/$/secret/list"],
    ["POST", "/v1/secret/s/drop"],
    ["POST", "/v1/jobs/pause"],
  ] as const;
  for (const [method, path] of UNSERVED) {
    it(`knows ${method} ${path}, which it does not serve`, async () => {
      await refused(sendHttp(server.port, { method, path, headers: LANCEDB }), "Unsupported");
    });
  }

  it("prewarms columns, and refuses columns and indices that are not there", async () => {
    await answered(call("t/page_cache/prewarm/", { columns: ["id"] }));
    await answered(call("t/page_cache/prewarm/", { columns: null }));
    await refused(call("t/page_cache/prewarm/", { columns: ["nope"] }), "TableColumnNotFound", 400);
    await refused(call("nope/page_cache/prewarm/", { columns: ["id"] }), "TableNotFound");
    await refused(call("t/index/nope/prewarm/"), "TableIndexNotFound");
  });

  describe("a write in parts", () => {
    const begin = async (table: string) =>
      (await answered<{ upload_id: string }>(call(`${table}/multipart_write/create`))).upload_id;
    const part = (table: string, id: string, name: string, body: Uint8Array, more = "") =>
      upload(`${table}/insert/?upload_id=${id}&upload_part_id=${name}${more}`, body);
    const end = (table: string, id: string, how: "complete" | "abort") =>
      call(`${table}/multipart_write/${how}?upload_id=${id}`);
    const leftovers = async () => (await readdir(server.base)).filter((name) => name.startsWith(".staging"));

    beforeAll(() => upload("parts/create/", personStream(people(1))));

    it("is seen when it is complete, as one version", async () => {
      const id = await begin("parts");
      await answered(part("parts", id, "b", personStream(people(3, 10))));
      await answered(part("parts", id, "a", personStream(people(2, 20))));
      assert.equal(await count("parts"), 1);
      const done = await answered<object>(end("parts", id, "complete"));
      assert.deepEqual(done, { version: 2, num_inserted_rows: 5 });
      assert.equal(await count("parts"), 6);
      await refused(end("parts", id, "complete"), "TransactionNotFound");
      assert.deepEqual(await leftovers(), []);
    });

    it("replaces a part that is sent again", async () => {
      const id = await begin("parts");
      const before = await count("parts");
      await answered(part("parts", id, "a", personStream(people(9))));
      await answered(part("parts", id, "a", personStream(people(2))));
      await answered(end("parts", id, "complete"));
      assert.equal(await count("parts"), before + 2);
    });

    it("overwrites when a part says so", async () => {
      const id = await begin("parts");
      await answered(part("parts", id, "a", personStream(people(2)), "&mode=overwrite"));
      await answered(part("parts", id, "b", personStream(people(2)), "&mode=overwrite"));
      await answered(end("parts", id, "complete"));
      assert.equal(await count("parts"), 4);
    });

    it("gives a declared table its first version", async () => {
      await answered(call("declared/declare", {}, {}));
      const id = await begin("declared");
      await answered(part("declared", id, "a", personStream(people(2))));
      assert.equal((await answered(end("declared", id, "complete")))["version"], 1);
    });

    it("leaves nothing when it is aborted", async () => {
      const id = await begin("parts");
      await answered(part("parts", id, "a", personStream(people(2))));
      await answered(end("parts", id, "abort"));
      await refused(part("parts", id, "b", personStream(people(2))), "TransactionNotFound");
      await refused(end("parts", id, "abort"), "TransactionNotFound");
      assert.deepEqual(await leftovers(), []);
      assert.equal(await count("parts"), 4);
    });

    it("can be tried again when a part was wrong", async () => {
      const id = await begin("parts");
      await answered(part("parts", id, "a", personStream(people(1))));
      await answered(part("parts", id, "b", otherStream()));
      await refused(end("parts", id, "complete"), "TableSchemaValidationError");
      await answered(part("parts", id, "b", personStream(people(1))));
      await answered(end("parts", id, "complete"));
      assert.equal(await count("parts"), 6);
    });

    it("belongs to its table, and to an id of the server's making", async () => {
      const id = await begin("parts");
      await refused(end("t", id, "complete"), "TransactionNotFound");
      await refused(part("t", id, "a", personStream([])), "TransactionNotFound");
      for (const other of ["../t.lance", "%2e%2e", "a".repeat(32), ""]) {
        await refused(end("parts", other, "abort"), "TransactionNotFound");
      }
      await refused(end("parts", id, "complete"), "InvalidInput");
      await refused(call("missing/multipart_write/create"), "TableNotFound");
      await answered(end("parts", id, "abort"));
    });

    it("is completed once, however many ask", async () => {
      const id = await begin("parts");
      const before = await count("parts");
      await answered(part("parts", id, "a", personStream(people(5))));
      const answers = await Promise.all([1, 2, 3, 4].map(() => end("parts", id, "complete")));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404]);
      assert.equal(await count("parts"), before + 5);
    });
  });
});
