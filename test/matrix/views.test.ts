import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { runSql } from "../support/run-sql.ts";
import { startServer, type TestServer } from "../support/server.ts";

describe("views of a directory", () => {
  let server: TestServer;
  let remove: () => Promise<void>;
  const uri = () => `http://127.0.0.1:${server.port}`;

  beforeAll(async () => {
    const directory = await temporaryDirectory();
    remove = directory.remove;
    const backend = await createDirectoryBackend({ root: directory.path, log: pino({ level: "silent" }) });
    server = await startServer(backend);
    await post("namespace/eu/create", { context: { "lance_gateway.kind": "database" } });
    await post("namespace/eu$team/create", {});
    const headers = { "content-type": "application/vnd.apache.arrow.stream" };
    for (const [i, name] of ["people", "eu$people", "eu$team$people"].entries()) {
      const body = personStream(people(i + 1));
      const made = await fetch(`${uri()}/v1/table/${name}/create`, { method: "POST", headers, body });
      assert.ok(made.ok, await made.text());
    }
  });
  afterAll(async () => {
    await server.close();
    await remove();
  });

  async function post(path: string, body: object | undefined, database?: string) {
    const answer = await fetch(`${uri()}/v1/${path}`, {
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
      headers: { "content-type": "application/json", ...(database && { "x-lancedb-database": database }) },
    });
    return { status: answer.status, text: await answer.text() };
  }
  const sql = (statement: string, database?: string) =>
    runSql(uri(), database === undefined ? {} : { "x-lancedb-database": database }, { statement });
  const count = async (name: string, database?: string) =>
    (await sql(`SELECT count(*)::INTEGER FROM ${name}`, database))[0]?.[0];

  test("read the tables of the database in which they were created, from wherever they are read", async () => {
    await sql("CREATE VIEW by_sql AS FROM people", "eu");
    for (const [name, wanted] of [
      ["by_route", 2],
      ["team$by_route", 3],
    ] as const) {
      const { status, text } = await post(`view/${name}/create`, { query: "FROM people" }, "eu");
      assert.equal(status, 200, text);
      assert.equal(await count(name.replace("$", "."), "eu"), wanted);
    }
    for (const name of ["by_sql", "by_route"]) {
      assert.equal(await count(name, "eu"), 2);
      assert.equal(await count(`eu.${name}`), 2);
      assert.match((await post(`view/eu$${name}/describe`, {})).text, /"default_namespace":\["eu"\]/);
      assert.doesNotMatch((await post(`view/${name}/describe`, {}, "eu")).text, /"default_namespace":\["/);
    }
    assert.equal(await count('"eu$team".by_route'), 3);
    assert.match((await post("namespace/$/view/list", undefined, "eu")).text, /\["by_route","by_sql"\]/);
    assert.match((await post("namespace/$/view/list", undefined)).text, /"views":\[\]/);
  });

  test("cannot be used as namespaces, tables or databases, although their rows are those of namespaces", async () => {
    await sql("CREATE VIEW taken AS SELECT 1 AS one");
    const source = { kind: "query", output_schema: "", source_query: "SELECT one FROM taken" };
    const declared = { operations: [{ declare_table: { id: ["taken"] } }] };
    const refusals: readonly (readonly [path: string, body: object | undefined, status: number])[] = [
      ["namespace/taken/describe", {}, 404],
      ["namespace/taken/exists", {}, 404],
      ["namespace/taken/drop", {}, 404],
      ["namespace/taken/drop", { behavior: "cascade" }, 404],
      ["namespace/taken/list", undefined, 404],
      ["namespace/taken/table/list", undefined, 404],
      ["namespace/taken/view/list", undefined, 404],
      ["namespace/taken$inner/create", {}, 404],
      ["namespace/taken/create", {}, 409],
      ["namespace/taken/create", { mode: "exist_ok" }, 409],
      ["namespace/taken/create", { mode: "overwrite" }, 409],
      ["namespace/taken/create", { mode: "exist_ok", context: { "lance_gateway.kind": "database" } }, 409],
      ["table/taken/describe", {}, 404],
      ["table/taken/exists", {}, 404],
      ["table/taken/query", { k: 1 }, 404],
      ["table/taken/drop", {}, 404],
      ["table/taken/deregister", {}, 404],
      ["table/taken/rename", { new_table_name: "other" }, 404],
      ["table/people/rename", { new_table_name: "taken" }, 409],
      ["table/taken/declare", {}, 409],
      ["table/taken$inner/declare", {}, 404],
      ["table/taken/register", { location: "a.lance" }, 409],
      ["table/taken/register", { location: "a.lance", mode: "overwrite" }, 409],
      ["table/taken/clone", { source_location: "people" }, 409],
      ["table/other/clone", { source_location: "taken" }, 404],
      ["table/batch-commit", declared, 409],
      ["materialized_view/taken/create", { ...source, source_query: "SELECT id FROM people" }, 409],
      ["materialized_view/other/create", source, 404],
      ["view/taken$inner/create", { query: "SELECT 1" }, 404],
      ["view/eu/create", { query: "SELECT 1", replace: true }, 409],
      ["view/eu/drop", {}, 404],
      ["view/people/drop", {}, 404],
      ["view/a%2Fb/create", { query: "SELECT 1" }, 400],
      ["view/fresh/create", { query: "SELECT 1", default_namespace: ["a$b"] }, 400],
      ["view/fresh/create", { query: "SELECT 1", default_namespace: [""] }, 400],
    ];
    for (const [path, body, status] of refusals) {
      const answer = await post(path, body);
      assert.equal(answer.status, status, `${path} ${JSON.stringify(body)}: ${answer.text}`);
    }
    assert.deepEqual(await sql("FROM taken"), [[1]]);
    // A header that names a view names no database.
    assert.equal(await count("people", "taken"), 1);
    await sql("DROP VIEW taken");
  });

  test("are not on the pages of namespaces, which stay full", async () => {
    for (const name of ["a", "c", "e"]) await post(`namespace/eu$p${name}/create`, {});
    for (const name of ["b", "d", "f"]) await sql(`CREATE VIEW eu.p${name} AS SELECT 1 AS one`);
    const pages: string[][] = [];
    for (let token = ""; ; ) {
      const { text } = await post(`namespace/eu/list?limit=2&page_token=${token}`, undefined);
      const page = JSON.parse(text) as { namespaces: string[]; page_token?: string };
      pages.push(page.namespaces);
      if (!page.page_token) break;
      token = encodeURIComponent(page.page_token);
    }
    assert.deepEqual(pages, [
      ["pa", "pc"],
      ["pe", "team"],
    ]);
    const { text } = await post("namespace/eu/view/list?limit=2", undefined);
    assert.match(text, /\["by_route","by_sql"\]/);
  });
});
