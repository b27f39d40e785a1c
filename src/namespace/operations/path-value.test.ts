import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { seedOf } from "../../../test/support/seed.ts";
import { hasDotSegment } from "./path-value.ts";

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
