import assert from "node:assert/strict";
import { test } from "vitest";
import { boundsOf } from "../sql-engine.ts";
import type { EngineProcess } from "./engine-process.ts";
import { createProcessPool } from "./process-pool.ts";

test("a process whose memory leaves too little for a statement does not get another one", async () => {
  const started: { memory: number; hasEnded: boolean }[] = [];
  const pool = createProcessPool(boundsOf({ memoryMib: 100, keptMib: 50 }), () => {
    const own = { memory: 50 + 768, hasEnded: false };
    started.push(own);
    return {
      memoryMib: async () => own.memory,
      get hasEnded() {
        return own.hasEnded;
      },
      kill() {
        own.hasEnded = true;
      },
    } as unknown as EngineProcess;
  });
  const run = async () => {
    const lease = await pool.take("a", new AbortController().signal);
    lease.end(true);
    await new Promise(setImmediate);
  };
  await run();
  await run();
  assert.deepEqual(started, [{ memory: 818, hasEnded: false }]);
  const [first] = started;
  assert.ok(first);
  first.memory = 819;
  await run();
  assert.equal(first.hasEnded, true);
  await run();
  assert.equal(started.length, 2);
  pool.close();
});
