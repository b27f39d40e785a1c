import assert from "node:assert/strict";
import { test } from "vitest";
import { withoutEndSlashes } from "./base-paths.ts";

test("a path loses the slashes at its end, and those within it are looked at once", () => {
  const slashes = "/".repeat(500_000);
  assert.deepEqual(["a/b//", "a", "/", ""].map(withoutEndSlashes), ["a/b", "a", "", ""]);
  assert.equal(withoutEndSlashes(`a${slashes}b`), `a${slashes}b`);
  assert.equal(withoutEndSlashes(`a${slashes}`), "a");
});
