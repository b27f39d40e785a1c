import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { seedOf } from "../../../test/support/seed.ts";
import { hasDotSegment, parseTemplate } from "./template.ts";

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

const BASE = "http://host/v1/table/t/index/";

describe("hasDotSegment", () => {
  test("finds dots alone in every spelling that a parser, a proxy or a server folds", () => {
    for (const value of [
      ".",
      "../..",
      "...",
      "%2e",
      "%2E%2e",
      ".%2e",
      "..;",
      "..;a=b",
      "a/..",
      "../a",
      "a/./b",
      "a\\..\\b",
      "a%2f..%2Fb",
      "..%5c",
    ]) {
      assert.ok(hasDotSegment(value), value);
    }
  });

  test("leaves names with dots in them alone", () => {
    for (const value of ["", "a", ".a", "a.", "a..b", "..a", "a;..b", "a.lance", "feature/1.x", "-.", "2e"]) {
      assert.ok(!hasDotSegment(value), value);
    }
  });

  test("every value that it lets pass stays one segment of a URL, encoded or not", () => {
    const piece = fc.constantFrom(".", "../..", "%2e", "%2E", "/", "\\", "%2f", ";", "a", "$", "%");
    const seed = seedOf("FUZZ_SEED");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const value = pieces.join("");
        if (hasDotSegment(value) || value === "") return;
        const { pathname } = new URL(`${BASE}${encodeURIComponent(value)}/drop`);
        assert.equal(pathname.split("/").length, 7, value);
        // A proxy that decodes once before it folds must not drop the segments in front either.
        const raw = new URL(`${BASE}${value.replaceAll(/[?#]/g, "")}/drop`).pathname;
        assert.ok(raw.startsWith("/v1/table/t/index/"), raw);
      }),
      { numRuns: 2_000, seed },
    );
  });
});
