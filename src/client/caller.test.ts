import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { heapGrowth } from "../../test/support/heap-growth.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { ListTablesResponseSchema, TableExistsResponseSchema } from "../gen/lance/namespace/v1/table_pb.ts";
import { createCaller } from "./caller.ts";
import { createNamespace } from "./namespace.ts";
import type { OpenOptions } from "./tables.ts";
import type { CallOptions } from "./types.ts";

const { insertIntoTable, queryTable } = LanceNamespaceService.method;
const MANY = 100_000;

test("options that a call does not have are refused with their names", async () => {
  const connection = createNamespace({
    name: "test",
    operations: {
      listTables: async () => create(ListTablesResponseSchema, { tables: ["t"] }),
      tableExists: async () => create(TableExistsResponseSchema),
    },
  });
  const unknown = (names: string) => ({
    name: "LanceError",
    kind: "InvalidInput",
    message: new RegExp(`no option ${names}$`),
  });
  const options = { timeout: 5, timeoutMs: 5000, retries: 1 } as CallOptions;
  const both = '"timeout", "retries"';
  await assert.rejects(connection.tableExists({ id: ["t"] }, options), unknown(both));
  await assert.rejects(connection.listTables({ id: [] }, options), unknown(both));
  await assert.rejects(Array.fromAsync(connection.listTables({ id: [] }, options)), unknown(both));
  await assert.rejects(connection.queryTable({ id: ["t"] }, options).toTable(), unknown(both));
  await assert.rejects(connection.insertIntoTable({ id: ["t"] }, new Uint8Array(), options), unknown(both));
  await assert.rejects(connection.createTable("t", new Uint8Array(), options), unknown(both));
  await assert.rejects(connection.dropTable("t", options), unknown(both));
  await assert.rejects(connection.renameTable("t", "u", options), unknown(both));
  await assert.rejects(connection.openTable("t", { storage: {} } as OpenOptions), unknown('"storage"'));
  await connection.tableExists({ id: ["t"] }, { timeoutMs: 5000, timeout: undefined } as CallOptions);
});

describe("a client keeps nothing of the pieces that were", () => {
  test("read", async () => {
    const message = create(queryTable.output);
    const caller = createCaller("test", {
      async *queryTable() {
        for (let count = 0; count < MANY; count += 1) yield message;
      },
    });
    let read = 0;
    const grown = await heapGrowth(async (measure) => {
      for await (const _ of caller.download(queryTable, create(queryTable.input), {}))
        if (++read === MANY) measure();
    });
    assert.ok(grown < MANY * 50, `${grown} bytes for ${MANY} pieces`);
  });

  test("sent", async () => {
    const piece = new Uint8Array(1);
    async function* pieces() {
      for (let count = 0; count < MANY; count += 1) yield piece;
    }
    let sent = 0;
    const grown = await heapGrowth(async (measure) => {
      const caller = createCaller("test", {
        async insertIntoTable(_request, data) {
          for await (const _ of data) if (++sent === MANY) measure();
          return create(insertIntoTable.output);
        },
      });
      await caller.upload(insertIntoTable, create(insertIntoTable.input), pieces(), {});
    });
    assert.ok(grown < MANY * 50, `${grown} bytes for ${MANY} pieces`);
  });
});
