import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { parseDuration } from "./duration.ts";

test("durations are read in milliseconds", () => {
  const lengths = {
    "500ms": 500,
    "30s": 30_000,
    "1.5s": 1500,
    "5m": 300_000,
    "1h30m": 5_400_000,
    " 2s ": 2000,
  };
  for (const [text, milliseconds] of Object.entries(lengths)) {
    assert.equal(parseDuration("timeout", text), milliseconds, text);
  }
  assert.equal(parseDuration("timeout", "250us"), 0.25);
  assert.equal(parseDuration("timeout", undefined), undefined);
  assert.equal(parseDuration("timeout", "  "), undefined);
});

test("a text that is not a duration is InvalidInput", () => {
  for (const text of ["30", "s", "PT30S", "-1s", "0s", "0ms", "1e3s", "1 s", "1s 2", "1d", "\u0663s"]) {
    assert.throws(() => parseDuration("timeout", text), failsWith("InvalidInput"), text);
  }
});
