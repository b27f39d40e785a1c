import assert from "node:assert/strict";
import { test } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { parseTimeout } from "./handler.ts";
import { encodeMessage } from "./status.ts";

test("grpc-message escapes all but visible ASCII and spaces", () => {
  assert.equal(encodeMessage("plain text ~!"), "plain text ~!");
  assert.equal(encodeMessage("50% é\n€"), "50%25 %C3%A9%0A%E2%82%AC");
  assert.equal(encodeMessage("\ud800"), "%EF%BF%BD");
});

test("grpc-timeout has six units", () => {
  const cases: [string, number][] = [
    ["1H", 3_600_000],
    ["2M", 120_000],
    ["3S", 3_000],
    ["4m", 4],
    ["5000u", 5],
    ["99999999n", 99.999999],
  ];
  for (const [text, expected] of cases) assert.ok(Math.abs(parseTimeout(text) - expected) < 1e-6, text);
  assert.throws(() => parseTimeout("1s"), LanceError);
});
