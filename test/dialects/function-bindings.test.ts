import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Field, Schema, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { FUNCTION_KEY } from "../../src/backends/dir/operations/functions/computed-column.ts";
import { columnOf, register, SOURCE, serveFunctions, withTable } from "./function-service.ts";
import type { RemoteCalls } from "./remote-calls.ts";

/** Returns the metadata of the columns of a table by their names. */
async function metadataOf(calls: RemoteCalls, table: string): Promise<Map<string, string | undefined>> {
  interface Field {
    readonly name: string;
    readonly metadata?: Readonly<Record<string, string>>;
  }
  const { schema } = await calls.post<{ schema: { fields: readonly Field[] } }>(
    `table/${table}/describe/`,
    {},
  );
  return new Map(schema.fields.map(({ name, metadata }) => [name, metadata?.[FUNCTION_KEY]]));
}

function setMetadata(calls: RemoteCalls, path: string, text: string) {
  const updates = [{ path, metadata: { [FUNCTION_KEY]: text } }];
  return calls.post("table/t/update_field_metadata", { updates });
}

test("metadata that a writer has changed chooses no function, initialization or input", async (t) => {
  const started: unknown[] = [];
  const { calls } = await serveFunctions(t, async (driver) => {
    started.push(await driver.task());
    return driver.finish({ result: { rows: 0, version: 2, failed: 0 } });
  });
  await withTable(calls);
  await calls.post("secret/token/create", { value: "x" });
  const secret_bindings = [{ kind: "env", variable: "TOKEN", secret_ref: { name: "token" } }];
  const plain = await register(calls, "plain");
  const [other, next] = [
    await register(calls, "other", { secret_bindings }),
    await register(calls, "plain", { source: `${SOURCE}\n` }),
  ];
  await calls.post("table/t/add_columns/", columnOf(plain, "loud"));
  const honest = (await metadataOf(calls, "t")).get("loud") ?? "";
  const value = JSON.parse(honest) as Record<string, unknown>;
  const refuse = () => calls.refused("InvalidTableState", "table/t/backfill_column", { column: "loud" }, 400);
  for (const change of [
    { objectId: other.object_id, name: "other" },
    { version: Number(next.version) },
    { initialization: { url: "http://attacker" } },
    { inputs: [["word", "id"]] },
    { inputs: [["word", "nope"]] },
  ]) {
    await setMetadata(calls, "loud", JSON.stringify({ ...value, ...change }));
    const refusal = await refuse();
    assert.match(refusal, /the metadata of column loud was changed/);
    assert.ok(refusal.includes(honest), refusal);
  }
  await setMetadata(calls, "loud", "{");
  await refuse();
  await setMetadata(calls, "name", honest);
  assert.match(
    await calls.refused("InvalidTableState", "table/t/backfill_column", { column: "name" }, 400),
    /column name .* no owner has chosen a function for it/,
  );
  assert.deepEqual(started, []);

  // A former choice of an owner does not count either.
  await calls.post("table/t/drop_columns/", { columns: ["loud"] });
  await calls.post("table/t/add_columns/", columnOf(next, "loud"));
  const chosen = (await metadataOf(calls, "t")).get("loud") ?? "";
  await setMetadata(calls, "loud", honest);
  await refuse();
  await setMetadata(calls, "loud", chosen);
  const { job_id } = await calls.post("table/t/backfill_column", { column: "loud" });
  assert.equal((await calls.ended(job_id)).job_state, "DONE");
  assert.equal(started.length, 1);
}, 60_000);

test("a table that a writer creates or copies with the metadata of a function has none", async (t) => {
  const { calls } = await serveFunctions(t, () => assert.fail("no driver starts"));
  await withTable(calls);
  const version = await register(calls);
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  const text = (await metadataOf(calls, "t")).get("loud") ?? "";
  const fields = [
    new Field("name", new Utf8(), true),
    new Field("loud", new Utf8(), true, new Map([[FUNCTION_KEY, text]])),
  ];
  const rows = { name: vectorFromArray(["a"], new Utf8()), loud: vectorFromArray([null], new Utf8()) };
  const copy = new Table(new Schema(fields), rows);
  await calls.upload("table/copy/create/", tableToIPC(copy, "stream"));
  assert.equal((await metadataOf(calls, "copy")).get("loud"), text);
  await calls.refused("InvalidTableState", "table/copy/backfill_column", { column: "loud" }, 400);
}, 60_000);

test("a column keeps its function under the name that it was added with", async (t) => {
  const { calls } = await serveFunctions(t, async (driver) => {
    await driver.task();
    await driver.finish({ result: { rows: 0, version: 2, failed: 0 } });
  });
  await withTable(calls);
  await calls.post("table/t/add_columns/", columnOf(await register(calls), "loud"));
  const rename = (path: string, to: string) =>
    calls.post("table/t/alter_columns/", { alterations: [{ path, rename: to }] });
  await rename("loud", "louder");
  await calls.refused("InvalidTableState", "table/t/backfill_column", { column: "louder" }, 400);
  await rename("louder", "loud");
  await calls.post("table/t/rename", { new_table_name: "u" });
  const { job_id } = await calls.post("table/u/backfill_column", { column: "loud" });
  assert.equal((await calls.ended(job_id)).job_state, "DONE");
}, 60_000);

test("the choice of an owner ends with its column, and an owner who does not add the column chooses nothing", async (t) => {
  const { calls, root } = await serveFunctions(t, async (driver) => {
    await driver.task();
    await driver.finish({ result: { rows: 0, version: 2, failed: 0 } });
  });
  await withTable(calls);
  const [first, second] = [await register(calls), await register(calls, "other")];
  const bindings = async () => {
    const folder = join(root, "data", ".functions", "columns");
    return (await readdir(folder, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
  };
  const fill = async (column: string) => {
    const { job_id } = await calls.post("table/t/backfill_column", { column });
    assert.equal((await calls.ended(job_id)).job_state, "DONE");
  };
  const refuse = (column: string) =>
    calls.refused("InvalidTableState", "table/t/backfill_column", { column }, 400);
  await calls.post("table/t/add_columns/", columnOf(first, "loud"));
  await calls.refused("TableSchemaValidationError", "table/t/add_columns/", columnOf(second, "loud"));
  await fill("loud");
  const text = (await metadataOf(calls, "t")).get("loud") ?? "";

  // A writer adds a column of the former name, with the metadata of the former column.
  const add = async (name: string) => {
    await calls.post("table/t/add_columns/", { new_columns: [{ name, expression: "name" }] });
    await setMetadata(calls, name, text);
  };
  await calls.post("table/t/alter_columns/", { alterations: [{ path: "loud", rename: "louder" }] });
  await add("loud");
  await refuse("loud");
  await calls.post("table/t/drop_columns/", { columns: ["loud", "louder"] });
  assert.deepEqual(await bindings(), []);
  await add("loud");
  await refuse("loud");

  const again = async () => {
    await calls.post("table/t/drop/");
    await withTable(calls);
  };
  await again();
  await calls.post("table/t/add_columns/", columnOf(first, "loud"));
  await again();
  await add("loud");
  await refuse("loud");

  await again();
  await calls.post("table/t/add_columns/", columnOf(first, "loud"));
  await calls.post("namespace/n/create", {});
  await calls.post("table/t/rename", { new_table_name: "t", new_namespace_id: ["n"] });
  await calls.post("namespace/n/drop", { behavior: "Cascade" });
  await withTable(calls);
  await add("loud");
  await refuse("loud");
}, 60_000);

test("of owners that add a column at the same time, the one that has added it chooses its function", async (t) => {
  const { calls } = await serveFunctions(t, async (driver) => {
    await driver.task();
    await driver.finish({ result: { rows: 0, version: 2, failed: 0 } });
  });
  await withTable(calls);
  const versions = [await register(calls), await register(calls, "other"), await register(calls, "third")];
  await Promise.allSettled(
    versions.map((version) => calls.post("table/t/add_columns/", columnOf(version, "loud"))),
  );
  const { job_id } = await calls.post("table/t/backfill_column", { column: "loud" });
  assert.equal((await calls.ended(job_id)).job_state, "DONE");
}, 60_000);
