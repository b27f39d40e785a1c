import assert from "node:assert/strict";
import { test } from "vitest";
import { MAX_IDENTIFIER_BYTES } from "../../../../namespace/identifier.ts";
import { isRootDirectory, uniqueLocation } from "./location-names.ts";

/** Longest name of a directory on common file systems, in bytes. */
const MAX_DIRECTORY_NAME = 255;

test("a drawn location has 70 random bits, also with the longest identifier", () => {
  const id = ["n".repeat(MAX_IDENTIFIER_BYTES - 2), "t"];
  const location = uniqueLocation(id);
  assert.equal(Buffer.byteLength(location), MAX_DIRECTORY_NAME);
  assert.match(location, /^[0-9a-v]{14}_n+\$t$/);
  assert.equal(isRootDirectory(location), false);
  // Each character takes all 32 values.
  const drawn = Array.from({ length: 1_000 }, () => uniqueLocation(["t"]));
  for (let at = 0; at < 14; at += 1) assert.equal(new Set(drawn.map((name) => name[at])).size, 32);
});
