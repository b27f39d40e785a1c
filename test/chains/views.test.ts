import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Access } from "../../src/namespace/authorizer.ts";
import { people, personStream } from "../support/arrow.ts";
import { runSql } from "../support/run-sql.ts";
import {
  type DirectoryServer,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";

const log = pino({ level: "silent" });
const keys = { owner: drawKey(), bi: drawKey() };
type Caller = keyof typeof keys;

/** Proves the callers by their keys. */
const proof = () =>
  createAuthenticator(
    [
      proveByKeys({
        find(text) {
          const name = text === keys.owner.text ? "owner" : "bi";
          const facts = { hash: "", created: "2026-01-01T00:00:00.000Z", role: "owner" } as const;
          return { ...facts, id: keys[name].id, name };
        },
        close() {},
      }),
    ],
    { failed: () => 0 },
  );

describe("views behind a gateway that decides about its callers, in front of one that does not", () => {
  let [directory, front]: [DirectoryServer | undefined, TestServer | undefined] = [undefined, undefined];
  const lines: string[] = [];
  const uri = () => `http://127.0.0.1:${front?.port}`;

  beforeAll(async () => {
    directory = await startDirectoryServer();
    const backend = await createRestBackend({ uri: `http://127.0.0.1:${directory.port}`, log });
    const authorizer = {
      allows: ({ name }: { readonly name: string }, { object }: Access) =>
        name === "owner" || object.id.join(".") !== "team.salaries",
      close() {},
    };
    const trail = {
      requireWritable() {},
      write: async (line: string) => void lines.push(line),
      close: async () => {},
    };
    front = await startServer(backend, {}, { authenticator: proof(), authorizer, trail });
    await post("namespace/team/create", {});
    for (const name of ["people", "salaries"]) {
      const made = await fetch(`${uri()}/v1/table/team$${name}/create`, {
        method: "POST",
        headers: { "x-api-key": keys.owner.text, "content-type": "application/vnd.apache.arrow.stream" },
        body: personStream(people(3)),
      });
      assert.ok(made.ok, await made.text());
    }
  });
  afterAll(async () => {
    await front?.close();
    await directory?.close();
  });

  async function post(path: string, body: object | undefined, caller: Caller = "owner") {
    const answer = await fetch(`${uri()}/v1/${path}`, {
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
      headers: { "x-api-key": keys[caller].text, "content-type": "application/json" },
    });
    return { status: answer.status, text: await answer.text() };
  }
  const sql = (statement: string, caller: Caller = "owner") =>
    runSql(uri(), { "x-api-key": keys[caller].text }, { statement });

  test("are created, described, listed, read and dropped", async () => {
    assert.equal(
      (await post("view/team$few/create", { query: "FROM people WHERE id < 2" }, "bi")).status,
      200,
    );
    await sql("CREATE VIEW fewer AS SELECT id FROM team.few WHERE id > 0", "bi");
    assert.deepEqual(await sql("SELECT id FROM fewer", "bi"), [[1]]);
    assert.match((await post("view/fewer/describe", {}, "bi")).text, /SELECT id FROM team.few WHERE id > 0/);
    assert.match((await post("namespace/team/view/list", undefined, "bi")).text, /"views":\["few"\]/);
    await assert.rejects(sql("CREATE VIEW fewer AS SELECT 1"), /already exists/);
    await sql("DROP VIEW fewer", "bi");
    await assert.rejects(sql("FROM fewer", "bi"), /was not found/);
    const noted = lines.map((line) => JSON.parse(line)).filter(({ operation }) => /View$/.test(operation));
    for (const operation of ["CreateView", "DropView"])
      assert.ok(noted.some((line) => line.operation === operation && line.object === "fewer"));
  });

  test("tell nothing of a table that their creator may not read", async () => {
    for (const query of ["FROM salaries", "FROM team.salaries", "SELECT (SELECT max(id) FROM salaries)"]) {
      const { status, text } = await post("view/team$peek/create", { query }, "bi");
      assert.match(text, /\(\w+\) on team\$salaries is not allowed/);
      assert.equal(status, 403);
    }
    await assert.rejects(sql("CREATE VIEW peek AS FROM team.salaries", "bi"), /on team\$salaries/);
    assert.equal((await post("view/team$peek/describe", {})).status, 404);
  });

  test("are read with the rights of the reader", async () => {
    await sql("CREATE VIEW pay AS FROM team.salaries");
    await sql("CREATE VIEW of_pay AS SELECT count(*) AS n FROM pay");
    for (const statement of ["FROM pay", "FROM of_pay", "WITH x AS (FROM of_pay) SELECT 1 FROM x"])
      await assert.rejects(sql(statement, "bi"), /on team\$salaries/);
    assert.deepEqual(await sql("FROM of_pay"), [[3]]);
  });
});
