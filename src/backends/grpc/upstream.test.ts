import assert from "node:assert/strict";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { toMetadata } from "./upstream.ts";

test("headers become metadata, and base64 becomes bytes", () => {
  const metadata = toMetadata(["x-lance-a", "1", "x-lance-b-bin", "AAE="]);
  assert.deepEqual(metadata.getMap(), { "x-lance-a": "1", "x-lance-b-bin": Buffer.from([0, 1]) });
});

test("rejects values that metadata cannot have, without repeating them", () => {
  for (const [name, value] of [
    ["authorization", "Bearer marked-sécret"],
    ["x-lance-a", "marked\r\nx: y"],
    ["x-lance-a", "marked\ttab"],
    ["x-lance-a!", "marked"],
  ] as const) {
    assert.throws(
      () => toMetadata([name, value]),
      (error) => isLanceError(error, "InvalidInput") && !/marked/.test(`${error.stack} ${error.cause}`),
    );
  }
});
