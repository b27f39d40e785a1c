import assert from "node:assert/strict";
import { test } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import type { Access } from "../../namespace/authorizer.ts";
import { createDecisionCache } from "./decision-cache.ts";

const accessTo = (name: string): Access => ({
  operation: "DescribeTable",
  action: "describe",
  object: { kind: "Table", database: undefined, id: [name] },
});

test("decisions of a caller with long claims take no more memory than those of others", () => {
  const cache = createDecisionCache(60_000);
  const caller = { ...ann, claims: { roles: "r".repeat(32 * 1024) } };
  const before = process.memoryUsage().heapUsed;
  for (let table = 0; table < 4_000; table++) cache.remember(caller, accessTo(`t${table}`), true);
  // With the claims in each, they would take 128 MiB.
  assert.ok(process.memoryUsage().heapUsed - before < 32 * 1024 ** 2);
  assert.equal(cache.find({ ...caller }, accessTo("t1")), true);
  assert.equal(cache.find({ ...caller, claims: {} }, accessTo("t1")), undefined);
});
