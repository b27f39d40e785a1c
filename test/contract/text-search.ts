import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import {
  FtsOperator,
  type FtsQuerySchema,
  type QueryTableRequestSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { columnsOf, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { textsStream } from "../support/rows.ts";
import type { World } from "./world.ts";

type Query = Omit<MessageInitShape<typeof QueryTableRequestSchema>, "$typeName">;
type Tree = Omit<MessageInitShape<typeof FtsQuerySchema>, "$typeName">;

/** Searches for words, alone and together with a vector. */
export function textSearchTests(world: World): void {
  const run = async (id: string[], query: Query) => (await world.client.queryTable({ ...query, id })).bytes;
  const ids = async (id: string[], query: Query) =>
    rowsOf(await run(id, query)).map((row) => Number(row["id"]));
  const found = async (id: string[], query: Query) => (await ids(id, query)).sort((a, b) => a - b);

  /** Creates a table of texts in which `body` has an index with positions, or in which both columns have one. */
  async function texts(...columns: string[]): Promise<string[]> {
    const id = [await world.namespace(), "texts"];
    await world.client.createTable({ id }, textsStream());
    for (const column of columns) {
      const options = { column, indexType: "FTS", withPosition: true, stem: false, removeStopWords: false };
      await world.client.createTableScalarIndex({ id, ...options });
    }
    return id;
  }
  const words = (query: string, columns: string[] = []): Query => ({
    fullTextQuery: { stringQuery: { query, columns } },
  });
  const tree = (query: Tree): Query => ({ fullTextQuery: { structuredQuery: { query } } });
  const match = (terms: string, options: object = {}): Tree => ({
    match: { terms, column: "body", ...options },
  });

  describe("full-text searches", () => {
    test("find words in the indexed columns, with their scores", async () => {
      const id = await texts("body");
      const bytes = await run(id, words("apple"));
      assert.ok(columnsOf(bytes).includes("_score"));
      assert.deepEqual(await found(id, words("apple")), [0, 2]);
      assert.deepEqual(await found(id, words("apple fox", ["body"])), [0, 2, 3, 4]);
      assert.deepEqual(await found(id, words("nowhere")), []);
      assert.deepEqual(await found(id, words("été")), [5]);
    });

    test("take filter, columns, k, offset, row ids and fast search", async () => {
      const id = await texts("body");
      const query = words("apple fox");
      assert.deepEqual(await found(id, { ...query, filter: "id > 2" }), [3, 4]);
      assert.equal((await ids(id, { ...query, k: 3n })).length, 3);
      assert.equal((await ids(id, { ...query, offset: 3n })).length, 1);
      const named = { ...query, columns: { columnNames: ["id"] } };
      assert.deepEqual(columnsOf(await run(id, named)), ["id", "_score"]);
      for (const fastSearch of [false, true]) {
        assert.deepEqual(await found(id, { ...named, fastSearch }), [0, 2, 3, 4]);
        assert.deepEqual(columnsOf(await run(id, { ...named, fastSearch })), ["id", "_score"]);
        const withIds = columnsOf(await run(id, { ...named, fastSearch, withRowId: true }));
        assert.deepEqual(withIds.sort(), ["_rowid", "_score", "id"]);
      }
      const none = { ...words("nowhere"), columns: { columnNames: ["id"] }, fastSearch: true };
      assert.deepEqual(columnsOf(await run(id, none)), ["id", "_score"]);
    });

    test("have no row for a k of 0, and are refused with a vector", async () => {
      const id = await texts("body");
      const columns = { columnNames: ["id"] };
      for (const options of [{}, { offset: 1n }, { filter: "id > 2" }, { fastSearch: true }]) {
        const bytes = await run(id, { ...words("apple"), ...options, columns, k: 0n });
        assert.deepEqual([rowsOf(bytes), columnsOf(bytes)], [[], ["id", "_score"]]);
      }
      const vector = { singleVector: [1, 2] };
      await refused("InvalidInput", run(id, { ...words("apple"), vector, k: 0n }));
    });

    test("find nothing for a text without words", async () => {
      const id = await texts("body");
      for (const blank of ["", " "]) assert.deepEqual(await found(id, words(blank)), []);
      await refused("InvalidInput", run(id, { fullTextQuery: {} }));
    });

    const structured: Record<string, [Tree, number[]]> = {
      match: [match("apple date"), [0, 2]],
      "match of all terms": [match("apple date", { operator: FtsOperator.AND }), [2]],
      "fuzzy match": [match("aple", { fuzziness: 1 }), [0, 2]],
      "fuzzy match with a fixed start": [match("xpple", { fuzziness: 1, prefixLength: 1 }), []],
      phrase: [{ phrase: { terms: "apple banana", column: "body" } }, [0]],
      "phrase with a gap": [{ phrase: { terms: "quick fox", column: "body", slop: 1 } }, [3]],
      boost: [{ boost: { positive: match("apple"), negative: match("date"), negativeBoost: 0.1 } }, [0, 2]],
      "multi match": [
        { multiMatch: { matchQueries: [{ terms: "apple", column: "body", boost: 2 }] } },
        [0, 2],
      ],
      "multi match of different terms": [
        {
          multiMatch: {
            matchQueries: [
              { terms: "apple", column: "body" },
              { terms: "dog", column: "body" },
            ],
          },
        },
        [0, 2, 4],
      ],
      "boolean must and must not": [
        { boolean: { must: [match("apple")], mustNot: [match("date")], should: [] } },
        [0],
      ],
      "boolean should": [
        { boolean: { must: [], mustNot: [], should: [match("date"), match("dog")] } },
        [2, 4],
      ],
    };
    for (const [what, [query, expected]] of Object.entries(structured)) {
      test(`as a tree: ${what}`, async () => {
        assert.deepEqual(await found(await texts("body"), tree(query)), expected);
      });
    }

    test("filter before the search, or after it and before k and the offset", async () => {
      const id = await texts("body");
      const query = { ...words("apple fox"), columns: { columnNames: ["id"] } };
      const order = await ids(id, query);
      assert.equal(order.length, 4);
      const [first, second, third] = order as [number, number, number];
      for (const prefilter of [undefined, true]) {
        const options = { ...(prefilter !== undefined && { prefilter }), k: 1n };
        assert.deepEqual(await ids(id, { ...query, ...options, filter: `id <> ${first}` }), [second]);
      }
      const after = { ...query, prefilter: false };
      assert.deepEqual(await ids(id, { ...after, k: 1n, filter: `id <> ${first}` }), []);
      assert.deepEqual(await ids(id, { ...after, k: 3n, filter: `id <> ${second}` }), [first, third]);
      assert.deepEqual(await ids(id, { ...after, k: 2n, offset: 1n, filter: `id <> ${first}` }), [third]);
      await refused("InvalidInput", run(id, { ...after, k: 4n, filter: "null" }));
      const every = await run(id, { ...after, withRowId: true, filter: "id >= 0" });
      assert.deepEqual(columnsOf(every), columnsOf(await run(id, { ...query, withRowId: true })));
      const whole = { ...words("apple fox"), prefilter: false };
      assert.deepEqual(
        columnsOf(await run(id, { ...whole, filter: "id > 99" })),
        columnsOf(await run(id, words("apple fox"))),
      );
      await refused("TableColumnNotFound", run(id, { ...after, filter: "nope > 1" }));
      await refused("InvalidInput", run(id, { ...after, filter: "id >" }));
    });

    test("as a tree without a column search all indexed columns", async () => {
      const id = await texts("body", "title");
      const open: Tree[] = [
        { match: { terms: "apple" } },
        { phrase: { terms: "apple" } },
        { multiMatch: { matchQueries: [{ terms: "apple" }] } },
        { boolean: { must: [{ match: { terms: "apple" } }], mustNot: [], should: [] } },
      ];
      for (const query of open) assert.deepEqual(await found(id, tree(query)), [0, 2]);
      const backwards = tree({ phrase: { terms: "banana apple" } });
      assert.deepEqual(await found(id, backwards), [0]);
      assert.deepEqual(await found(id, words("apple", ["body", "title"])), [0, 2]);
    });

    test("a boost puts less welcome matches last, and scores follow their factors", async () => {
      const id = await texts("body");
      const boosted = tree({ boost: { positive: match("cherry"), negative: match("date") } });
      assert.deepEqual(await ids(id, boosted), [1, 2]);
      const score = async (boost: number) =>
        Number(rowsOf(await run(id, tree(match("dog", { boost }))))[0]?.["_score"]);
      assert.ok(Math.abs((await score(3)) / (await score(1)) - 3) < 0.01);
    });

    test("work in a named column without an index, and on a branch", async () => {
      const id = await texts();
      assert.deepEqual(await found(id, words("apple", ["body"])), [0, 2]);
      assert.deepEqual(await found(id, tree(match("apple"))), [0, 2]);
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.deleteFromTable({ id, predicate: "id = 0", branch: "b" });
      assert.deepEqual(await found(id, { ...words("apple", ["body"]), branch: "b" }), [2]);
    });

    const wrong: Record<string, [Query, ErrorName]> = {
      "no column with an index": [words("apple"), "InvalidInput"],
      "no column with an index, in a tree": [tree({ match: { terms: "apple" } }), "InvalidInput"],
      "a missing column": [words("apple", ["nothing"]), "TableColumnNotFound"],
      "a missing column in a tree": [tree(match("apple", { column: "nothing" })), "TableColumnNotFound"],
      "a column of numbers": [words("apple", ["id"]), "InvalidInput"],
      "more words than are searched for at a time, in several columns": [
        words("apple ".repeat(100), Array(50).fill("body")),
        "InvalidInput",
      ],
      "a string and a tree": [
        {
          fullTextQuery: {
            stringQuery: { query: "apple", columns: ["body"] },
            structuredQuery: { query: match("apple") },
          },
        },
        "InvalidInput",
      ],
      "neither a string nor a tree": [{ fullTextQuery: {} }, "InvalidInput"],
      "a tree of nothing": [tree({}), "InvalidInput"],
      "a tree without a root": [{ fullTextQuery: { structuredQuery: {} } }, "InvalidInput"],
      "two kinds in one node": [
        tree({ ...match("apple"), phrase: { terms: "apple", column: "body" } }),
        "InvalidInput",
      ],
      "a boost without a negative": [tree({ boost: { positive: match("apple") } }), "InvalidInput"],
      "a boolean of nothing": [tree({ boolean: { must: [], should: [], mustNot: [] } }), "InvalidInput"],
      "a boolean of must not alone": [
        tree({ boolean: { must: [], should: [], mustNot: [match("apple")] } }),
        "InvalidInput",
      ],
      "a multi match of nothing": [tree({ multiMatch: { matchQueries: [] } }), "InvalidInput"],
      "elements of lists as documents": [
        tree(match("apple", { documentGranularity: "list_element" })),
        "Unsupported",
      ],
      "an unknown granularity": [
        tree({ phrase: { terms: "a", column: "body", documentGranularity: "page" } }),
        "InvalidInput",
      ],
      "a negative fuzziness": [tree(match("apple", { fuzziness: -1 })), "InvalidInput"],
      "a negative boost": [tree(match("apple", { boost: -1 })), "InvalidInput"],
      "a negative slop": [tree({ phrase: { terms: "a", column: "body", slop: -1 } }), "InvalidInput"],
      "a tree that is too deep": [
        tree(
          Array.from({ length: 40 }).reduce<Tree>(
            (inner) => ({ boolean: { must: [inner], should: [], mustNot: [] } }),
            match("apple"),
          ),
        ),
        "InvalidInput",
      ],
    };
    for (const [what, [query, error]] of Object.entries(wrong)) {
      test(`${what} is ${error}`, async () => {
        await refused(error, world.client.queryTable({ ...query, id: await texts() }));
      });
    }

    test("a phrase needs an index with positions", async () => {
      const id = await texts();
      await world.client.createTableScalarIndex({
        id,
        column: "body",
        indexType: "FTS",
        withPosition: false,
      });
      const phrase = tree({ phrase: { terms: "apple banana", column: "body" } });
      await refused("InvalidInput", world.client.queryTable({ ...phrase, id }));
    });
  });

  describe("hybrid searches", () => {
    const hybrid = { ...words("apple", ["body"]), vector: { singleVector: [0, 0] }, k: 4n };

    test("fuse the ranks of neighbours and words", async () => {
      const id = await texts("body");
      const bytes = await run(id, hybrid);
      const [first, ...others] = rowsOf(bytes);
      assert.equal(first?.["id"], 0);
      const relevance = [first, ...others].map((row) => Number(row?.["_relevance_score"]));
      assert.deepEqual(
        relevance,
        relevance.toSorted((a, b) => b - a),
      );
      assert.equal(relevance.length, 4);
    });

    test("take offset, columns, row ids, filter and prefilter", async () => {
      const id = await texts("body");
      const relevance = async (query: Query) =>
        rowsOf(await run(id, query)).map((row) => row["_relevance_score"]);
      const whole = await relevance({ ...hybrid, k: 5n });
      assert.deepEqual(await relevance({ ...hybrid, k: 3n, offset: 2n }), whole.slice(2));
      assert.deepEqual(await relevance({ ...hybrid, offset: 99n }), []);
      const named = { ...hybrid, columns: { columnNames: ["id"] }, withRowId: true };
      const columns = ["_relevance_score", "_rowid", "_score", "id"];
      assert.deepEqual(columnsOf(await run(id, named)).sort(), columns);
      const aliases = { ...hybrid, columns: { columnAliases: { n: "id + 1" } } };
      assert.deepEqual(columnsOf(await run(id, aliases)).sort(), ["_relevance_score", "_score", "n"]);
      assert.deepEqual(await found(id, { ...hybrid, filter: "id > 1", prefilter: true }), [2, 3, 4, 5]);
    });

    test("have equal columns with and without rows", async () => {
      const id = await texts("body");
      for (const options of [{}, { columns: { columnNames: ["id"] } }, { withRowId: true }]) {
        const columns = columnsOf(await run(id, { ...hybrid, ...options }));
        const empty = await run(id, { ...hybrid, ...options, filter: "id > 99" });
        assert.deepEqual(columnsOf(empty), columns);
        assert.deepEqual(rowsOf(empty), []);
      }
    });

    test("continue with one side when the other finds nothing", async () => {
      const id = await texts("body");
      assert.deepEqual(await ids(id, { ...hybrid, ...words("nowhere"), k: 2n }), [0, 1]);
      const wordsAlone = { ...hybrid, lowerBound: 1e6 };
      assert.deepEqual(await found(id, wordsAlone), [0, 2]);
      const relevance = rowsOf(await run(id, wordsAlone)).map((row) => Number(row["_relevance_score"]));
      assert.deepEqual(
        relevance.map((value) => Math.round(1 / value)),
        [60, 61],
      );
      assert.equal((await ids(id, { ...wordsAlone, offset: 1n })).length, 1);
      const fast = { ...hybrid, fastSearch: true, columns: { columnNames: ["id"] } };
      assert.deepEqual(await found(id, fast), [0, 2]);
      assert.ok(!columnsOf(await run(id, fast)).includes("_rowid"));
    });

    test("are explained search by search", async () => {
      const id = await texts("body");
      const { plan } = await world.client.explainTableQueryPlan({ id, query: hybrid });
      assert.match(plan, /vector search[\s\S]*KNN[\s\S]*full-text search[\s\S]*MatchQuery/);
      const { analysis } = await world.client.analyzeTableQueryPlan({ ...hybrid, id });
      assert.match(analysis, /vector search[\s\S]*output_rows[\s\S]*full-text search[\s\S]*output_rows/);
      const text = await world.client.explainTableQueryPlan({ id, query: words("apple") });
      assert.match(text.plan, /MatchQuery/);
    });

    test("refuse several vectors and an order", async () => {
      const id = await texts("body");
      const several = { ...hybrid, vector: { multiVector: [{ values: [0, 0] }, { values: [1, 0] }] } };
      await refused("InvalidInput", world.client.queryTable({ ...several, id }));
      const ordered = { ...hybrid, orderBy: [{ columnName: "id" }] };
      await refused("Unsupported", world.client.queryTable({ ...ordered, id }));
    });
  });
}
