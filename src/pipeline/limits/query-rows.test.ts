import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import type { JsonArrowFieldSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { compose, type Next } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { limitQueryRows } from "./query-rows.ts";

const { queryTable, countTableRows, describeTable } = LanceNamespaceService.method;
type Query = MessageInitShape<typeof queryTable.input>;

/** Asks queries of a table with 1,000 rows, of which 7 meet any condition, behind a bound of 10; records what is counted. */
function open(count: () => number = () => 1_000, schema?: MessageInitShape<typeof JsonArrowFieldSchema>[]) {
  const counted: (string | undefined)[] = [];
  const backend: Next = async ({ method }, request) => {
    if (request.operation === "describeTable") {
      assert.equal(method, describeTable);
      assert.deepEqual([request.message.identifier, request.message.version], ["t", 3n]);
      if (schema === undefined) throw new LanceError("Unsupported", "no");
      return create(describeTable.output, { schema: { fields: schema } }) as never;
    }
    if (request.operation !== "countTableRows") {
      assert.equal(method, queryTable);
      return (async function* () {
        yield create(queryTable.output);
      })() as never;
    }
    assert.equal(method, countTableRows);
    assert.equal(request.message.identifier, "t");
    counted.push(request.message.predicate);
    const rows = request.message.predicate === undefined ? count() : 7;
    return create(countTableRows.output, { count: BigInt(rows) }) as never;
  };
  const service = serviceOf(compose([limitQueryRows(10)], backend));
  const ask = async (query: Query) => {
    const message = create(queryTable.input, { identifier: "t", version: 3n, ...(query as object) });
    for await (const _ of service.download(queryTable, message, beginCall(queryTable)));
  };
  return { ask, counted };
}

const isRefused = (error: unknown) =>
  isLanceError(error, "InvalidInput") && /a query may have 10 rows/.test(error.message);
const ONE = { vector: { singleVector: [1, 2] } };

describe("limitQueryRows", () => {
  it("counts nothing for a query whose k is within the bound", async () => {
    const { ask, counted } = open();
    for (const query of [
      { k: 10n },
      { k: 10n, ...ONE },
      ONE,
      { k: 0n, ...ONE },
      { k: 0n },
      { k: 5n, vector: { multiVector: [{}, {}] } },
    ])
      await ask(query);
    assert.deepEqual(counted, []);
  });

  it("counts the rows that meet the condition of a scan", async () => {
    const { ask, counted } = open();
    await ask({ filter: "a > 1" });
    await ask({ filter: "a > 1", k: 9_007_199_254_740_993n });
    await assert.rejects(ask({}), isRefused);
    await assert.rejects(ask({ k: 11n }), isRefused);
    assert.deepEqual(counted, ["a > 1", "a > 1", undefined, undefined]);
  });

  it("counts the rest of a scan behind its offset", async () => {
    const { ask } = open();
    await ask({ offset: 990n });
    await assert.rejects(ask({ offset: 989n }), isRefused);
  });

  it("counts each vector of a search, and all rows whatever its condition", async () => {
    const { ask, counted } = open();
    await assert.rejects(ask({ k: 11n, ...ONE, filter: "a > 1" }), isRefused);
    await assert.rejects(ask({ k: 6n, vector: { multiVector: [{}, {}] } }), isRefused);
    assert.deepEqual(counted, [undefined, undefined]);
  });

  it("counts vectors of a column of lists as a single search, wherever the column is", async () => {
    const vectors = { type: "fixed_size_list", length: 2n };
    const lists = { type: "list", fields: [{ name: "item", type: vectors }] };
    const multiVector = [{ values: [1, 2] }, { values: [3, 4] }];
    const searches = (vectorColumn?: string) => ({ k: 6n, vectorColumn, vector: { multiVector } });
    const { ask, counted } = open(undefined, [
      { name: "v", type: vectors },
      { name: "s", type: { type: "struct", fields: [{ name: "l", type: lists }] } },
    ]);
    await ask(searches("s.l"));
    assert.deepEqual(counted, []);
    await assert.rejects(ask({ ...searches("s.l"), k: 11n }), isRefused);
    await assert.rejects(ask(searches("v")), isRefused);
    await assert.rejects(ask(searches()), isRefused);
    await assert.rejects(ask(searches("x")), isRefused);
    await open(undefined, [{ name: "l", type: lists }]).ask(searches());
  });

  it("counts the rows of a query for empty vectors or no words, which is a scan", async () => {
    const { ask, counted } = open();
    await assert.rejects(ask({ vector: { multiVector: [{}] } }), isRefused);
    await assert.rejects(ask({ vector: {} }), isRefused);
    await assert.rejects(ask({ fullTextQuery: {} }), isRefused);
    assert.deepEqual(counted, [undefined, undefined, undefined]);
    await ask({ fullTextQuery: { stringQuery: { query: "a" } } });
    assert.equal(counted.length, 3);
  });

  it("refuses what a backend cannot count, and passes other failures on", async () => {
    const fails = (name: "Unsupported" | "TableNotFound") =>
      open(() => {
        throw new LanceError(name, "no");
      });
    await assert.rejects(fails("Unsupported").ask({}), isRefused);
    await assert.rejects(fails("TableNotFound").ask({}), (error) => isLanceError(error, "TableNotFound"));
  });
});
