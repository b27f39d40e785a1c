import assert from "node:assert/strict";
import { connect } from "@lancedb/lancedb";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";
import { type RemoteCalls, remoteCalls } from "./remote-calls.ts";

const UPSERT = "on=id&when_matched_update_all=true&when_not_matched_insert_all=true";

/** Requests as the source of the crate `lancedb` 0.41.0 writes them; no package has this client yet. */
describe("clients of LanceDB 0.41, over a directory", () => {
  let server: DirectoryServer;
  let calls: RemoteCalls;
  beforeAll(async () => {
    server = await startDirectoryServer();
    calls = remoteCalls(server.port);
    for (const name of ["t", "logged"]) await calls.upload(`table/${name}/create/`, personStream(people(3)));
    const db = await connect(server.base);
    const logged = await db.openTable("logged");
    await logged.setUnenforcedPrimaryKey(["id"]);
    await logged.setLsmWriteSpec({ specType: "unsharded", maintainedIndexes: [] });
    db.close();
  });
  afterAll(() => server.close());

  const query = { vector: [], k: 9, prefilter: true };

  it("learn the write path of a table, and that there is none", async () => {
    assert.equal((await calls.post("table/t/get_rte_spec/"))["rte_spec"], null);
    const { rte_spec: spec } = await calls.post("table/logged/get_rte_spec/");
    assert.deepEqual(spec, { sharding: { mode: "unsharded" } });
    for (const [route, field] of [
      ["get_rte_stats", "rte_stats"],
      ["get_lsm_stats", "lsm_stats"],
    ] as const) {
      const stats = await calls.post(`table/t/${route}/`, { include_sstable_rows: false });
      assert.equal(stats[field], null);
      assert.match(await calls.refused("Unsupported", `table/logged/${route}/`, {}), /write log/);
      await calls.refused("TableNotFound", `table/missing/${route}/`, {});
    }
  });

  it("learn why no write path is enabled or emptied", async () => {
    const spec = { sharding: { mode: "unsharded" }, maintained_indexes: null, writer_config_defaults: {} };
    for (const route of ["enable_rte", "flush_rte", "compact_rte", "flush_lsm", "compact_lsm"]) {
      assert.match(await calls.refused("Unsupported", `table/t/${route}/`, spec), /log of a table/);
      await calls.refused("TableNotFound", `table/missing/${route}/`, spec);
    }
  });

  it("read and merge past a log, and are refused one that is not there", async () => {
    const read = (more: object) =>
      sendHttp(server.port, {
        path: "/v1/table/t/query/",
        headers: { "user-agent": "LanceDB-Rust-Client/0.41.0" },
        body: JSON.stringify({ ...query, ...more }),
      });
    assert.equal((await read({ use_rte: false })).status, 200);
    assert.equal((await read({ use_rte: null })).status, 200);
    const words = /the table has no MemWAL write spec/;
    assert.match(await calls.refused("InvalidInput", "table/t/query/", { ...query, use_rte: true }), words);
    const explained = { verbose: false, query: { ...query, use_rte: true } };
    assert.match(await calls.refused("InvalidInput", "table/t/explain_plan/", explained), words);
    const merge = (name: string, more: string) =>
      calls.upload(`table/${name}/merge_insert/?${UPSERT}${more}`, personStream(people(3, 2)));
    assert.equal((await merge("t", "&use_rte=false"))["num_rows"], 3);
    await assert.rejects(merge("t", "&use_rte=true"), words);
    await assert.rejects(merge("logged", ""), /use_lsm\(false\)/);
    assert.equal((await merge("logged", "&use_rte=false"))["num_rows"], 3);
  });

  it("take the write path from a table", async () => {
    await calls.post("table/logged/disable_rte/");
    assert.equal((await calls.post("table/logged/get_rte_spec/"))["rte_spec"], null);
    await calls.refused("InvalidInput", "table/logged/disable_rte/");
  });

  it("may say whether a computed column is refreshed by itself, but not how often", async () => {
    const column = (name: string, more: object) => ({ new_columns: [{ name, computed: "id * 2" }], ...more });
    const path = "table/t/add_columns/";
    for (const enabled of [true, false]) {
      await calls.post(path, column(`enabled_${enabled}`, { auto_refresh_enabled: enabled }));
    }
    const often = { auto_refresh_enabled: true, auto_refresh_interval_seconds: 300 };
    const refusal = await calls.refused("Unsupported", path, column("often", often));
    assert.match(refusal, /auto_refresh_interval_seconds .* refresh_column_async/);
    const application = { function: { name: "f", version: "1", object_id: "x" }, inputs: [] };
    const ofFunction = { new_columns: [{ name: "f", all_null: true }], function: { application } };
    assert.match(await calls.refused("Unsupported", path, ofFunction), /functions are Python/);
  });

  it("drop namespaces with what is in them", async () => {
    const drop = { mode: "Fail", behavior: "Restrict" };
    await calls.post("namespace/n/create", { mode: "Create" });
    await calls.upload("table/n$t/create/", personStream(people(1)));
    await calls.refused("NamespaceNotEmpty", "namespace/n/drop", drop);
    await calls.post("namespace/n/drop", { ...drop, behavior: "Cascade" });
    await calls.refused("NamespaceNotFound", "namespace/n/drop", drop);
    await calls.post("namespace/n/drop", { ...drop, mode: "Skip", behavior: "Cascade" });
  });

  it("learn who decides about rights, without a word of the secrets that they send", async () => {
    const secret = "a:never-show-this";
    for (const route of ["acl/list", "acl/add", "acl/delete", "principal", "group"]) {
      const body = JSON.stringify({ subject: secret, principal: secret });
      const headers = { "user-agent": "LanceDB-Rust-Client/0.41.0" };
      const answer = await sendHttp(server.port, { path: `/admin/authz/${route}`, headers, body });
      assert.equal(answer.status, 406, route);
      assert.match(answer.bytes.toString(), /roles and policies of this server decide/);
      assert.doesNotMatch(answer.bytes.toString(), /never-show/);
    }
    for (const action of ["list", "add", "delete"]) {
      const answer = await sendHttp(server.port, { path: `/admin/authz/role_binding/${action}`, body: "{}" });
      assert.equal(answer.status, 406, action);
    }
  });

  it("receive the reason for each service that is missing", async () => {
    const definition = { artifact: {}, signature: {}, runtime: {} };
    for (const [path, words, body] of [
      ["function/f/create", /functions are Python/, definition],
      ["function/f/describe", /functions are Python/, { version: "1" }],
      ["function/f/rename", /nothing else/, {}],
      ["view/v/rename", /nothing else/, {}],
      ["secret/s/create", /functions are Python/, { value: "x" }],
      ["secret/s/rename", /nothing else/, {}],
      ["jobs/pause", /could pause/, {}],
    ] as const) {
      assert.match(await calls.refused("Unsupported", path, body), words);
    }
  });
});
