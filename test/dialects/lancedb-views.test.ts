import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";
import { LANCEDB, type RemoteCalls, remoteCalls } from "./remote-calls.ts";

describe("materialized views as LanceDB's clients make them", () => {
  let server: DirectoryServer;
  let calls: RemoteCalls;
  beforeAll(async () => {
    server = await startDirectoryServer();
    calls = remoteCalls(server.port);
    await calls.upload("table/t/create/", personStream(people(5)));
  });
  afterAll(() => server.close());

  const create = (view: string, query: string, withNoData: boolean) =>
    sendHttp(server.port, {
      path: `/v1/materialized_view/${view}/create`,
      headers: LANCEDB,
      body: JSON.stringify({ query, with_no_data: withNoData }),
    });
  const count = (table: string) => calls.post<number>(`table/${table}/count_rows/`, { version: null });
  const refresh = async (view: string, options: object = {}) => {
    const { job_id } = await calls.post(`materialized_view/${view}/refresh`, { full: false, ...options });
    return (await calls.ended(job_id)).result;
  };

  it("take the schema of their query, and answer with the job that fills them", async () => {
    const { status, bytes } = await create(
      "pairs",
      'SELECT `id` AS "id", id * 2 AS "twice" FROM "t" WHERE id > 1',
      false,
    );
    assert.equal(status, 202);
    const { job_state, result } = await calls.ended(JSON.parse(bytes.toString()).job_id);
    assert.deepEqual(
      [job_state, result],
      ["DONE", { mode: "rebuild", rows_written: 3, source_version: 1, version: 2 }],
    );
    assert.equal(await count("pairs"), 3);
    const { schema } = await calls.post<{ schema: { fields: { name: string }[] } }>("table/pairs/describe/");
    assert.deepEqual(
      schema.fields.map(({ name }) => name),
      ["id", "twice"],
    );
  });

  it("are empty where the client wants no data, and then need no job", async () => {
    const { status, bytes } = await create("later", 'SELECT * FROM "t"', true);
    assert.deepEqual([status, JSON.parse(bytes.toString())], [201, { version: 1 }]);
    assert.equal(await count("later"), 0);
    assert.deepEqual(await refresh("later"), {
      mode: "rebuild",
      rows_written: 5,
      source_version: 1,
      version: 2,
    });
  });

  it("are refreshed as far as needed, whole, or to an older version of the source", async () => {
    await calls.upload("table/more/create/", personStream(people(3)));
    await create("of-more", 'SELECT `id` AS "id" FROM "more"', true);
    assert.equal((await refresh("of-more"))?.["mode"], "rebuild");
    assert.equal((await refresh("of-more"))?.["mode"], "no_op");
    await calls.upload("table/more/insert/", personStream(people(2, 3)));
    const added = await refresh("of-more");
    assert.deepEqual([added?.["mode"], added?.["rows_written"]], ["incremental", 2]);
    const whole = await refresh("of-more", { full: true });
    assert.deepEqual([whole?.["mode"], whole?.["rows_written"]], ["rebuild", 5]);
    const older = await refresh("of-more", { source_version: 1 });
    assert.deepEqual([older?.["rows_written"], older?.["source_version"]], [3, 1]);
    assert.equal(await count("of-more"), 3);
  });

  it("are described by their query and its source", async () => {
    const { query, source_table, source_namespace } = await calls.post("materialized_view/later/describe");
    assert.deepEqual([query, source_table, source_namespace], ['SELECT * FROM "t"', "t", []]);
    await calls.refused("InvalidInput", "materialized_view/t/describe");
    await calls.refused("TableNotFound", "materialized_view/nope/describe");
  });

  it("are listed by namespace, page by page, without the tables", async () => {
    await calls.post("namespace/team/create", {});
    await calls.upload("table/team$t/create/", personStream(people(1)));
    await create("team$mine", 'SELECT * FROM "team"."t"', true);
    const list = (namespace: string, query = "") =>
      calls.get<{ views: string[]; page_token?: string }>(
        `namespace/${namespace}/materialized_view/list${query}`,
      );
    assert.deepEqual(await list("$"), { views: ["later", "of-more", "pairs"] });
    assert.deepEqual(await list("team"), { views: ["mine"] });
    const first = await list("$", "?limit=2");
    assert.deepEqual(first.views, ["later", "of-more"]);
    assert.deepEqual(await list("$", `?limit=2&page_token=${first.page_token}`), { views: ["pairs"] });
  });

  it("are dropped with their rows, and tables are not", async () => {
    await calls.refused("InvalidInput", "materialized_view/t/drop");
    await calls.post("materialized_view/pairs/drop");
    await calls.refused("TableNotFound", "materialized_view/pairs/drop");
    await calls.refused("TableNotFound", "table/pairs/describe/");
    assert.equal(await count("t"), 5);
  });

  it("refuse a source that is not there, and queries of another form", async () => {
    const make = (query: string) => ({ query, with_no_data: true });
    await calls.refused("TableNotFound", "materialized_view/v/create", make("SELECT * FROM nope"));
    await calls.refused("TableColumnNotFound", "materialized_view/v/create", make("SELECT nope FROM t"), 400);
    await calls.refused(
      "InvalidInput",
      "materialized_view/v/create",
      make("SELECT count(*) FROM t GROUP BY id"),
    );
    await calls.refused("TableAlreadyExists", "materialized_view/later/create", make("SELECT * FROM t"));
  });

  it("say that their directory is gone, if somebody has removed it", async () => {
    await rm(join(server.base, "later.lance"), { recursive: true });
    await calls.refused("InvalidTableState", "materialized_view/later/describe", undefined, 400);
    await calls.refused("InvalidTableState", "materialized_view/later/refresh", {}, 400);
  });
});
