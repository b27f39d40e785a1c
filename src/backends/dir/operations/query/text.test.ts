import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { textSearch } from "./text.ts";

const TEXT = { name: "utf8" } as const;
const COLUMNS = ["a", "b", "c"];
const TARGET = {
  schema: { fields: COLUMNS.map((name) => ({ name, type: TEXT, nullable: true, children: [] })) },
  indexedFields: async () => COLUMNS,
  maxExpansions: 500,
} as unknown as Parameters<typeof textSearch>[1];

const search = (fullTextQuery: object, maxExpansions = 500) =>
  textSearch(create(QueryTableRequestSchema, { fullTextQuery }), { ...TARGET, maxExpansions });
const structured = (query: object, most?: number) => search({ structuredQuery: { query } }, most);
const refused = (searching: Promise<unknown>, reason: RegExp) =>
  assert.rejects(searching, (error: Error) => failsWith("InvalidInput")(error) && reason.test(error.message));
const fuzzy = (terms: string, more: object = {}) => ({
  match: { terms, column: "a", fuzziness: 2, ...more },
});
const should = (count: number, query: object) => ({ boolean: { should: Array(count).fill(query) } });

describe("the cost of a search for words", () => {
  test("fuzzy conditions expand to a bounded number of words in total", async () => {
    await structured(fuzzy("one two three"));
    await structured(should(9, fuzzy("word")));
    for (const query of [
      fuzzy("word", { maxExpansions: 2 ** 31 - 1 }),
      fuzzy("word", { maxExpansions: 501 }),
      fuzzy("word", { maxExpansions: 501, fuzziness: undefined, autoFuzziness: true }),
      fuzzy("word ".repeat(1000), { maxExpansions: 0 }),
      fuzzy("w".repeat(2001), { maxExpansions: 0 }),
      fuzzy("w", { fuzziness: 2 ** 31 - 1 }),
      fuzzy("word", { maxExpansions: 170, column: undefined }),
      should(1000, fuzzy("word")),
      { multiMatch: { matchQueries: Array(11).fill(fuzzy("word").match) } },
      { boost: { positive: should(6, fuzzy("word")), negative: should(6, fuzzy("word")) } },
    ]) {
      await refused(structured(query), /fuzzy conditions .* may expand to 500/);
    }
  });

  test("an operator may allow more expansions", async () => {
    await structured(should(20, fuzzy("word")), 2000);
    await refused(structured(fuzzy("word"), 0), /may expand to 0/);
  });

  test("a search has a bounded number of conditions, which count once for each column", async () => {
    const exact = { match: { terms: "w", column: "a" } };
    await structured(should(500, exact));
    await refused(structured(should(501, exact)), /500 conditions/);
    await refused(structured(should(167, { match: { terms: "w" } })), /500 conditions/);
    await refused(search({ stringQuery: { query: "w", columns: Array(501).fill("a") } }), /500 conditions/);
  });
});
