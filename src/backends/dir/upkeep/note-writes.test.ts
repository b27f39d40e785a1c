import assert from "node:assert/strict";
import { test } from "vitest";
import type { Call } from "../../../namespace/call/call.ts";
import { noteWrites } from "./note-writes.ts";

test("only operations that may write data are noted, also those that fail", async () => {
  const noted: unknown[] = [];
  const done = async () => ({});
  const operations = {
    describeTable: done,
    createNamespace: done,
    declareTable: done,
    createTableVersion: done,
    // Its call names no object, which would mean all tables.
    finishDriverTask: done,
    async insertIntoTable() {
      throw new Error("refused");
    },
  } as object;
  const all = noteWrites((id, by) => noted.push([...id, by]), { operations }).operations ?? {};
  for (const [name, operation] of Object.entries(all))
    await (operation as (request: object, call: Call) => Promise<unknown>)({}, { id: [name] } as never).catch(
      () => {},
    );
  assert.deepEqual(noted, [
    ["createTableVersion", "client"],
    ["insertIntoTable", "gateway"],
  ]);
});
