import assert from "node:assert/strict";
import { test } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { tablePages } from "./listing.ts";
import type { PipelineCalls } from "./pipeline-calls.ts";

test("a listing ends with an error where the catalog answers with the same page for ever", async () => {
  let calls = 0;
  const unary = async () => {
    calls += 1;
    if (calls > 10) throw new Error("there is no end");
    return { response: { tables: ["t"], pageToken: "next" }, call: {} };
  };
  const seen: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { tables } of tablePages([], { unary } as unknown as PipelineCalls))
        seen.push(...tables);
    },
    (error) => error instanceof LanceError && error.is("ServiceUnavailable"),
  );
  assert.deepEqual([seen, calls], [["t", "t"], 2]);
});
