import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { allowStaleness } from "./allow-staleness.ts";

test("omits a check for as long as the allowed staleness", async () => {
  let checks = 0;
  const check = async () => {
    checks++;
  };
  const lenient = allowStaleness(check, 60_000);
  for (let i = 0; i < 3; i++) await lenient();
  assert.equal(checks, 1);
  const strict = allowStaleness(check, 0);
  for (let i = 0; i < 3; i++) await strict();
  assert.equal(checks, 4);
  const failing = allowStaleness(() => Promise.reject(new Error("no")), 60_000);
  for (let i = 0; i < 2; i++) await assert.rejects(failing());
});

test("starts the next check in the second half of the allowed staleness, and waits for it only after that", async (t) => {
  t.onTestFinished(() => void vi.restoreAllMocks());
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const checks: PromiseWithResolvers<void>[] = [];
  const lenient = allowStaleness(() => {
    const check = Promise.withResolvers<void>();
    checks.push(check);
    return check.promise;
  }, 100);
  const first = lenient();
  checks[0]?.resolve();
  await first;
  now = 50;
  await lenient();
  assert.equal(checks.length, 1);
  now = 60;
  for (let i = 0; i < 3; i++) await lenient();
  assert.equal(checks.length, 2, "the calls share the check, which has not ended");
  checks[1]?.resolve();
  now = 300;
  const late = lenient();
  checks[2]?.resolve();
  await late;
  assert.equal(checks.length, 3);
});
