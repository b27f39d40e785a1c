import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { decodePercent } from "../transcode/percent.ts";
import { createTrie } from "../transcode/trie.ts";
import { formatTemplate, parseTemplate } from "./template.ts";

test("a template is parsed into segments, variables and a verb", () => {
  const template = parseTemplate("/v1/{name=shelves/*/books/**}:read");
  assert.deepEqual(template.segments, [
    { literal: "v1" },
    { literal: "shelves" },
    "*",
    { literal: "books" },
    "**",
  ]);
  assert.deepEqual(template.variables, [{ field: "name", start: 1, end: undefined }]);
  assert.equal(template.verb, "read");
});

test("a bad template is refused with the position", () => {
  for (const [source, message] of [
    ["v1", /expected "\/" at position 0/],
    ["/", /expected a segment at position 1/],
    ["/v1//a", /expected a segment at position 4/],
    ["/v1/{}", /expected a field name at position 5/],
    ["/v1/{a", /expected "}" at position 6/],
    ["/v1/{a={b}}", /expected a segment at position 7/],
    ["/v1/{a}/{a}", /no second "a"/],
    ["/v1/**/a", /nothing after "\*\*"/],
    ["/v1/a:", /expected a verb at position 6/],
    ["/v1/a b", /expected the end at position 5/],
  ] as const) {
    assert.throws(() => parseTemplate(source), { message });
  }
});

test("a path built from values matches and gives the values back", () => {
  const value = fc.oneof(
    fc.string({ unit: "binary", minLength: 1 }),
    fc.constantFrom("%", "%25", "+", "a/b", "$", "a$b", " ", "ä", "日本", "..", ":read", "a:read"),
  );
  fc.assert(
    fc.property(value, value, fc.nat(3), (first, second, slashes) => {
      const template = parseTemplate("/v1/table/{identifier}/index/{index_name}/stats");
      const trie = createTrie<string>();
      trie.add("POST", template, "target");
      trie.add("POST", parseTemplate("/v1/table/{identifier}/index/list:read"), "other");
      const path = formatTemplate(template, { identifier: first, index_name: second });
      const match = trie.match("POST", "/".repeat(slashes) + path + "/".repeat(slashes));
      assert.ok(match.target === "target");
      const [id, name] = template.variables.map(({ start }) =>
        decodePercent(match.segments[start] ?? "", ""),
      );
      assert.deepEqual([id, name], [first, second]);
    }),
  );
});
