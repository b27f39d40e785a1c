import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, type TestContext, test } from "vitest";
import { createComposedBackend } from "../../src/backends/composed/index.ts";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { people, personStream } from "../support/arrow.ts";
import { startRowlessServer } from "../support/catalogs/rowless-directory.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { runSql } from "../support/run-sql.ts";
import { startServer, type TestServer } from "../support/server.ts";

const log = pino({ level: "silent" });

/** Serves the rows of an upstream's tables, with a table `people` of five rows; returns what runs statements there. */
async function serveRows(t: TestContext, upstream: Pick<TestServer, "port">, root: string) {
  const catalog = await createRestBackend({ uri: `http://127.0.0.1:${upstream.port}`, log });
  const server = await startServer(createComposedBackend(catalog, { log, allowedLocations: [root] }));
  t.onTestFinished(server.close);
  const uri = `http://127.0.0.1:${server.port}`;
  const headers = { "content-type": "application/vnd.apache.arrow.stream" };
  const body = personStream(people(5));
  const made = await fetch(`${uri}/v1/table/people/create`, { method: "POST", headers, body });
  assert.ok(made.ok, await made.text());
  return (statement: string) => runSql(uri, {}, { statement });
}

describe("views on tables whose rows are served in front of another catalog", () => {
  test("are the catalog's if it has them, and read the rows here", async (t) => {
    const { path, remove } = await temporaryDirectory();
    t.onTestFinished(remove);
    const upstream = await startServer(await createDirectoryBackend({ root: path, log }));
    t.onTestFinished(upstream.close);
    const sql = await serveRows(t, upstream, path);
    await sql("CREATE VIEW few AS SELECT id FROM people WHERE id > 2");
    assert.deepEqual(await sql("SELECT id::INTEGER FROM few ORDER BY id"), [[3], [4]]);
    await sql("CREATE MATERIALIZED VIEW kept AS SELECT id FROM people WHERE id > 2");
    assert.deepEqual(await sql("SELECT id::INTEGER FROM kept ORDER BY id"), [[3], [4]]);
    await sql("DELETE FROM people WHERE id = 4");
    assert.deepEqual(await sql("SELECT id::INTEGER FROM few"), [[3]]);
    await sql("REFRESH MATERIALIZED VIEW kept");
    assert.deepEqual(await sql("SELECT id::INTEGER FROM kept"), [[3]]);
    await sql("DROP MATERIALIZED VIEW kept");
    await sql("DROP VIEW few");
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM people"), [[4]]);
  });

  test("are Unsupported for the reason that the catalog has none", async (t) => {
    const upstream = await startRowlessServer(undefined, (operations) => {
      const { createMaterializedView, refreshMaterializedView, ...rest } = operations;
      return rest;
    });
    t.onTestFinished(upstream.close);
    const sql = await serveRows(t, upstream, upstream.root);
    const reason = /not supported|no such operation/;
    await assert.rejects(sql("CREATE VIEW few AS SELECT id FROM people"), reason);
    await assert.rejects(sql("CREATE MATERIALIZED VIEW kept AS SELECT id FROM people"), reason);
    assert.deepEqual(await sql("SELECT count(*)::INTEGER FROM people WHERE id > 2"), [[2]]);
  });
});
