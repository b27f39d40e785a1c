import { expect, test } from "vitest";
import { SNIPPETS } from "./snippets.ts";

const place = { uri: "http://localhost:2333", credential: undefined, database: undefined };
const plain = { id: ["shop", "products"], k: 10 };

test("each snippet names the table, and none has a credential", () => {
  const own = { ...place, credential: "api-key" as const };
  for (const [name, write] of Object.entries(SNIPPETS)) {
    expect(write(own, plain), name).toContain("LANCE_GATEWAY_API_KEY");
    expect(write(place, plain), name).toContain("products");
  }
});

test("curl sends a query as REST has it, with quotes that a shell reads", () => {
  const query = { ...plain, filter: "name = 'it''s'", vector: [1, 2], fullTextQuery: "red shoes" };
  const text = SNIPPETS.curl(place, query);
  const body = /-d '(.*)'$/.exec(text)?.[1]?.replaceAll("'\\''", "'") ?? "";
  expect(text).toContain("/v1/table/shop%24products/query'");
  expect(JSON.parse(body)).toEqual({
    k: 10,
    filter: "name = 'it''s'",
    vector: { single_vector: [1, 2] },
    full_text_query: { string_query: { query: "red shoes" } },
  });
});

test("Python searches by vector, by words and by both", () => {
  expect(SNIPPETS.Python(place, { ...plain, vector: [1, 2] })).toContain("table.search([1, 2])");
  expect(SNIPPETS.Python(place, { ...plain, fullTextQuery: "a" })).toContain(
    'table.search("a", query_type="fts")',
  );
  const both = SNIPPETS.Python(place, { ...plain, vector: [1], fullTextQuery: "a" });
  expect(both).toContain('.vector([1])\n    .text("a")');
});
