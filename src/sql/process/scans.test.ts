import assert from "node:assert/strict";
import duckdb from "@duckdb/node-bindings";
import { test } from "vitest";
import { keepTable } from "./scans.ts";

test("a table whose compression fails is dropped, so that its name and its memory are free", async () => {
  const database = await duckdb.open(":memory:");
  const [connection, other] = await Promise.all([duckdb.connect(database), duckdb.connect(database)]);
  const query = (statement: string) => duckdb.query(connection, statement);
  const rows = "FROM range(1000)";
  await query("CREATE TABLE written(i INTEGER)");
  // DuckDB compresses nothing while another transaction writes.
  await duckdb.query(other, "BEGIN");
  await duckdb.query(other, "INSERT INTO written VALUES (1)");
  await assert.rejects(keepTable(query, "kept", rows), /CHECKPOINT/);
  await duckdb.query(other, "COMMIT");
  await assert.rejects(query("FROM kept"), /kept does not exist/);
  await keepTable(query, "kept", rows);
  await query("FROM kept");
});
