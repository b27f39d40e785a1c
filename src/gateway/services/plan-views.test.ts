import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { runSql } from "../../../test/support/run-sql.ts";
import { issueKey } from "../../auth/api-keys/key-file.ts";
import { connect } from "../../client/index.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { startGateway } from "../start-gateway.ts";

const POLICIES = `
  permit (principal in Role::"owner", action, resource);
  permit (principal == User::"api-key:bi", action in [Action::"list", Action::"describe"], resource);
  permit (principal == User::"api-key:bi", action in [Action::"read"], resource == Table::"team$people");
`;

describe("views", () => {
  const ends: (() => Promise<unknown>)[] = [];
  const keys: Record<"owner" | "bi", string> = { owner: "", bi: "" };
  let uri = "";

  beforeAll(async () => {
    const { path, remove } = await temporaryDirectory();
    ends.push(remove);
    const [file, policies] = [join(path, "keys.json"), join(path, "policies")];
    await mkdir(policies);
    await writeFile(join(policies, "team.cedar"), POLICIES);
    const keyOf = async (name: string, role: "owner" | "none") =>
      (await issueKey(file, { name, role, groups: [], scope: [] })).text;
    Object.assign(keys, { owner: await keyOf("ann", "owner"), bi: await keyOf("bi", "none") });
    const options = readServeOptions(
      sourcesOf([
        ...["--port", "0", "--drain-seconds", "0", "--root", join(path, "root"), "--auth", "api-key"],
        ...["--api-keys-file", file, "--policy-dir", policies],
      ]),
    );
    const gateway = await startGateway(options, pino({ level: "silent" }));
    ends.push(() => gateway.close("cut off"));
    uri = `http://127.0.0.1:${gateway.address.port}`;
    await using ns = await connect("connect", { uri, "header.x-api-key": keys.owner });
    await ns.createNamespace({ id: ["team"] });
    for (const name of ["people", "salaries"])
      await ns.createTable({ id: ["team", name] }, [{ id: 1 }, { id: 2 }, { id: 3 }]);
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });

  const sql = (statement: string, caller: keyof typeof keys = "owner", more: object = {}) =>
    runSql(uri, { "x-api-key": keys[caller] }, { statement, ...more });

  /** Sends a request as LanceDB's clients do. */
  async function rest(path: string, body?: object, caller: keyof typeof keys = "owner") {
    const headers = {
      "x-api-key": keys[caller],
      "x-lancedb-database": "db",
      "user-agent": "LanceDB-Python/0.40",
      "content-type": "application/json",
    };
    const response = await fetch(`${uri}/v1/${path}`, {
      ...{ method: body === undefined ? "GET" : "POST", headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, answer: await response.json() };
  }
  const refused = async (path: string, body: object, status: number, text: RegExp) => {
    const { status: actual, answer } = await rest(path, body);
    assert.match(JSON.stringify(answer), text);
    assert.equal(actual, status);
  };

  test("are created, described, listed and dropped as LanceDB's clients do it", async () => {
    const query = "SELECT id, id * 2 AS twice FROM people WHERE id > 1";
    const created = await rest("view/team$some/create", { query });
    assert.equal(created.status, 200, JSON.stringify(created.answer));
    const { schema, ...facts } = created.answer as { schema: { fields: { name: string }[] } };
    expect(facts).toMatchObject({
      ...{ name: "some", namespace: ["team"], query, default_database: "db", default_namespace: ["team"] },
    });
    assert.deepEqual(
      schema.fields.map(({ name }) => name),
      ["id", "twice"],
    );
    expect((await rest("view/team$some/describe", {})).answer).toMatchObject({ query, schema });
    expect((await rest("namespace/team/view/list")).answer).toMatchObject({ views: ["some"] });
    expect((await rest("namespace/$/view/list")).answer).toMatchObject({ views: [] });
    assert.deepEqual(await sql("SELECT sum(twice)::INTEGER FROM team.some"), [[10]]);
    assert.equal((await rest("view/team$some/drop", {})).status, 200);
    assert.equal((await rest("view/team$some/describe", {})).status, 404);
    assert.equal((await rest("view/team$some/drop", {})).status, 404);
  });

  test("have columns in the words of the specification, which LanceDB's clients read", async () => {
    const query = "SELECT 'x' AS text, [1.5::FLOAT] AS list";
    const { answer } = await rest("view/team$typed/create", { query });
    const types = (answer as { schema: { fields: { type: { type: string; fields?: unknown } }[] } }).schema
      .fields;
    assert.deepEqual(
      types.map(({ type }) => type.type),
      ["utf8", "list"],
    );
    expect(types[1]?.type.fields).toMatchObject([{ type: { type: "float32" } }]);
    await sql("DROP VIEW team.typed");
  });

  test("read the tables as they are when a statement reads the view, wherever it names it", async () => {
    await sql("CREATE VIEW team.many AS SELECT id FROM team.people WHERE id < 3;");
    await sql(
      "CREATE VIEW pairs AS SELECT a.id, b.id AS other FROM team.many AS a JOIN team.people AS b USING (id)",
    );
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM pairs"), [[2]]);
    const own = "WITH people AS (SELECT 99 AS id) SELECT team.many.id FROM team.many, people ORDER BY 1";
    assert.deepEqual(await sql(own), [[1], [2]]);
    assert.deepEqual(
      await sql("SELECT x FROM pairs AS p(x, y) WHERE x IN (SELECT id FROM team.many) ORDER BY x"),
      [[1], [2]],
    );
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM (DESCRIBE pairs)"), [[2]]);
    await sql("INSERT INTO team.people VALUES (0)");
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM pairs"), [[3]]);
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM pairs"), [[3]]);
    await sql("CREATE OR REPLACE VIEW team.many AS FROM team.people");
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM pairs"), [[4]]);
    await sql("CREATE VIEW IF NOT EXISTS pairs AS SELECT 1 AS one");
    await sql("CREATE TABLE copies AS FROM pairs");
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM copies"), [[4]]);
    await sql("DELETE FROM team.people WHERE id = 0");
    await sql("DROP TABLE copies");
    await sql("DROP VIEW pairs");
    await sql("DROP VIEW IF EXISTS pairs");
    await expect(sql("FROM pairs")).rejects.toThrow(/'pairs' was not found/);
    await sql("DROP VIEW team.many");
  });

  test("resolve names without a schema where they were created, not where they are read", async () => {
    await sql("CREATE VIEW own AS FROM people", "owner", { namespacePath: ["team"] });
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM team.own"), [[3]]);
    await expect(sql("CREATE VIEW team.root AS FROM people")).rejects.toThrow(/'people' was not found/);
    await sql("DROP VIEW own", "owner", { namespacePath: ["team"] });
  });

  test("are read with the rights of the reader", async () => {
    await sql("CREATE VIEW pay AS FROM team.salaries");
    await sql("CREATE VIEW staff AS FROM team.people");
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM staff", "bi"), [[3]]);
    await expect(sql("FROM pay", "bi")).rejects.toThrow(/\(read\) on team\$salaries/);
    await expect(sql("CREATE VIEW mine AS FROM team.people", "bi")).rejects.toThrow(
      /CreateView \(write\) on mine/,
    );
    await expect(sql("DROP VIEW staff", "bi")).rejects.toThrow(/DropView \(manage\) on staff/);
    const made = await rest("view/mine/create", { query: "FROM team.people" }, "bi");
    assert.equal(made.status, 403);
    await sql("DROP VIEW pay");
    await sql("DROP VIEW staff");
  });

  test("are created for callers and in databases that the message names", async () => {
    await using ns = await connect("connect", { uri, "header.x-api-key": keys.owner });
    await ns.createNamespace({ id: ["eu"], context: { "lance_gateway.kind": "database" } });
    await ns.createTable({ id: ["eu", "people"] }, [{ other: 1 }]);
    const body = {
      query: "SELECT other FROM people",
      identity: { api_key: keys.owner },
      context: { "header.x-lancedb-database": "eu" },
    };
    const headers = { "content-type": "application/json" };
    for (const action of ["create", "describe", "drop"]) {
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(`${uri}/v1/view/told/${action}`, init);
      const answer = (await response.json()) as object;
      assert.equal(response.status, 200, JSON.stringify(answer));
      if (action !== "drop") expect(answer).toMatchObject({ default_database: "eu", query: body.query });
    }
    await ns.dropNamespace({ id: ["eu"], behavior: 2 });
  });

  test("have names that no other object can have, and are not tables", async () => {
    await sql("CREATE VIEW taken AS SELECT 1 AS one");
    await expect(sql("CREATE VIEW taken AS SELECT 1 AS one")).rejects.toThrow(/'taken' already exists/);
    await expect(sql("CREATE TABLE taken AS SELECT 1 AS one")).rejects.toThrow(/'taken' already exists/);
    await expect(sql("CREATE OR REPLACE TABLE taken AS SELECT 1 AS one")).rejects.toThrow(/already exists/);
    await expect(sql("CREATE OR REPLACE VIEW team.people AS SELECT 1")).rejects.toThrow(/already exists/);
    await expect(sql("DROP VIEW team.people")).rejects.toThrow(/View 'team\$people' was not found/);
    await expect(sql("DROP TABLE taken")).rejects.toThrow(/Table 'taken' was not found/);
    await expect(sql("INSERT INTO taken VALUES (1)")).rejects.toThrow(/is a view/);
    await expect(sql("UPDATE taken SET one = 2")).rejects.toThrow(/is a view/);
    await expect(sql("FROM taken AT (VERSION => 1)")).rejects.toThrow(/which has no versions/);
    await expect(sql("CREATE VIEW nowhere.v AS SELECT 1")).rejects.toThrow(/Namespace not found: nowhere/);
    await using ns = await connect("connect", { uri, "header.x-api-key": keys.owner });
    await expect(ns.createNamespace({ id: ["taken"] })).rejects.toThrow(/already exists/);
    const properties = { "lance_gateway.sql_view.query": "FROM team.salaries" };
    await expect(ns.createNamespace({ id: ["forged"], properties })).rejects.toThrow(/only CreateView does/);
    await ns.createTable({ id: ["free"] }, [{ id: 1 }]);
    await expect(ns.renameTable({ id: ["free"], newTableName: "taken" })).rejects.toThrow(/already exists/);
    const names = (await ns.listTables({ id: [] })).tables;
    assert.ok(!names.includes("taken"));
    await sql("DROP VIEW taken");
  });

  test("have one query that is checked as a statement is", async () => {
    const refusals: readonly (readonly [query: string, status: number, text: RegExp])[] = [
      ["SELEC 1", 400, /does not parse/],
      ["SELECT * FROM nope", 404, /'nope' was not found/],
      ["SELECT nope FROM team.people", 400, /nope/],
      ["SELECT * FROM read_csv('/etc/passwd')", 406, /read_csv is not supported/],
      ["SELECT getenv('HOME')", 406, /getenv is not supported/],
      ["SELECT 1; DROP TABLE team.people", 406, /./],
      ["DROP TABLE team.people", 406, /the statement is not supported/],
      ["SELECT $1", 400, /no parameters/],
      ["SELECT * FROM lance.team.people", 406, /cannot name a database/],
      ["SELECT 1\0", 400, /null character/],
      ["FROM wrong", 400, /reads itself/],
      ["", 400, /./],
    ];
    for (const [query, status, text] of refusals) await refused("view/wrong/create", { query }, status, text);
    assert.equal((await rest("view/wrong/describe", {})).status, 404);
    await refused("view/wrong/rename", {}, 406, /nothing else/);
  });

  test("that read one another end at a bound", async () => {
    await sql("CREATE VIEW a0 AS SELECT 1 AS one");
    for (let i = 1; i <= 7; i++)
      await sql(
        `CREATE VIEW a${i} AS SELECT one FROM a${i - 1} ${i < 6 ? `UNION ALL FROM a${i - 1}` : ""}`,
      ).catch((thrown) => assert.match(String(thrown), /too many views|'a\d' was not found/));
    await sql("CREATE OR REPLACE VIEW a0 AS SELECT 2 AS one");
    await expect(sql("CREATE OR REPLACE VIEW a0 AS FROM a1")).rejects.toThrow(/reads itself|too many/);
    assert.deepEqual(await sql("SELECT sum(one)::INTEGER FROM a3"), [[16]]);
  });

  test("are removed with their namespace, by callers who may drop them", async () => {
    await using ns = await connect("connect", { uri, "header.x-api-key": keys.owner });
    await ns.createNamespace({ id: ["gone"] });
    await sql("CREATE VIEW gone.v AS SELECT 1 AS one");
    await expect(ns.dropNamespace({ id: ["gone"] })).rejects.toThrow(/not empty/i);
    await ns.dropNamespace({ id: ["gone"], behavior: 2 });
    await expect(sql("FROM gone.v")).rejects.toThrow(/was not found/);
  });
});
