import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { heapGrowth } from "../../test/support/heap-growth.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { createCaller } from "./caller.ts";

const { insertIntoTable, queryTable } = LanceNamespaceService.method;
const MANY = 100_000;

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
