import assert from "node:assert/strict";
import { test } from "vitest";
import { parseTemplate } from "./template.ts";

test("a template is parsed into segments and variables", () => {
  const template = parseTemplate("/v1/{name=shelves/*/books/*}/read");
  assert.deepEqual(template.segments, [
    { literal: "v1" },
    { literal: "shelves" },
    "*",
    { literal: "books" },
    "*",
    { literal: "read" },
  ]);
  assert.deepEqual(template.variables, [{ field: "name", start: 1, end: 5 }]);
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
    ["/v1/**", /expected the end at position 5/],
    ["/v1/a:read", /expected the end at position 5/],
    ["/v1/a b", /expected the end at position 5/],
  ] as const) {
    assert.throws(() => parseTemplate(source), { message });
  }
});
