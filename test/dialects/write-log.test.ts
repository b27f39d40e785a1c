import assert from "node:assert/strict";
import { connect } from "@lancedb/lancedb";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const HEADERS = { "user-agent": "LanceDB-Python-Client/0.40.0" };
const UPSERT = "on=id&when_matched_update_all=true&when_not_matched_insert_all=true";
const SPEC = { specType: "bucket" as const, column: "id", numBuckets: 2, maintainedIndexes: [] };

describe("logs of tables, over a directory", () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer();
    for (const name of ["plain", "logged"]) {
      await upload(`${name}/create/`, personStream(people(3)));
    }
    // Only the library itself gives a table a log.
    const db = await connect(server.base);
    const logged = await db.openTable("logged");
    await logged.setUnenforcedPrimaryKey(["id"]);
    await logged.setLsmWriteSpec(SPEC);
    db.close();
  });
  afterAll(() => server.close());

  const call = (path: string, json: object = {}) =>
    sendHttp(server.port, { path: `/v1/table/${path}`, headers: HEADERS, body: JSON.stringify(json) });
  const upload = (path: string, body: Uint8Array) => {
    const headers = { ...HEADERS, "content-type": "application/vnd.apache.arrow.stream" };
    return sendHttp(server.port, { path: `/v1/table/${path}`, headers, body });
  };
  const merge = (name: string, more = "") =>
    upload(`${name}/merge_insert/?${UPSERT}${more}`, personStream(people(3, 2)));

  async function refused(answer: ReturnType<typeof call>, name: ErrorName, words: RegExp): Promise<void> {
    const got = await answer;
    assert.equal(jsonOf(got)["code"], errorEntry(name).code, got.bytes.toString());
    assert.equal(got.status, errorEntry(name).httpStatus);
    assert.match(String(jsonOf(got)["error"]), words);
  }

  it("describes the log of a table, and null for a table without one", async () => {
    assert.equal(jsonOf(await call("plain/get_lsm_write_spec/"))["lsm_write_spec"], null);
    const { lsm_write_spec: spec } = jsonOf(await call("logged/get_lsm_write_spec/"));
    assert.deepEqual(spec, { sharding: { mode: "bucket", column: "id", num_buckets: 2 } });
    await refused(call("missing/get_lsm_write_spec/"), "TableNotFound", /missing/);
  });

  it("refuses to give a table a log", async () => {
    const set = (name: string) =>
      call(`${name}/set_lsm_write_spec/`, { sharding: { mode: "unsharded" }, maintained_indexes: null });
    await refused(set("plain"), "Unsupported", /log/);
    await refused(set("missing"), "TableNotFound", /missing/);
  });

  it("refuses use_lsm for a table without a log, and reads without it", async () => {
    const words = /the table has no MemWAL write spec/;
    await refused(call("plain/query/", { k: 1, use_lsm: true }), "InvalidInput", words);
    await refused(call("plain/explain_plan/", { query: { use_lsm: true } }), "InvalidInput", words);
    await refused(merge("plain", "&use_lsm=true"), "InvalidInput", words);
    assert.equal((await call("plain/query/", { k: 1, use_lsm: false })).status, 200);
    const merged = jsonOf(await merge("plain", "&use_lsm=false"));
    assert.deepEqual([merged["num_attempts"], merged["num_rows"]], [1, 3]);
  });

  it("writes no rows into a log, and around it only when a merge demands it", async () => {
    await refused(merge("logged"), "Unsupported", /use_lsm\(false\)/);
    await refused(merge("logged", "&use_lsm=true"), "Unsupported", /use_lsm\(false\)/);
    assert.equal(jsonOf(await merge("logged", "&use_lsm=false"))["num_rows"], 3);
    assert.equal((await call("logged/count_rows/")).bytes.toString(), "5");
    assert.equal((await call("logged/query/", { k: 9 })).status, 200);
  });

  it("takes the log from a table", async () => {
    assert.equal((await call("logged/unset_lsm_write_spec/")).status, 200);
    assert.equal(jsonOf(await call("logged/get_lsm_write_spec/"))["lsm_write_spec"], null);
    await refused(call("logged/unset_lsm_write_spec/"), "InvalidInput", /no LSM write spec is set/);
    assert.equal(jsonOf(await merge("logged"))["num_rows"], 3);
  });
});
