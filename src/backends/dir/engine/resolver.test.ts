import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { temporaryDirectory } from "../../../../test/support/directory.ts";
import { loadNative } from "./native/load.ts";
import { createResolver, tableName } from "./resolver.ts";

/** Number of pauses as long as Node keeps idle connections by default, 6 s. */
const SILENCES = Number(process.env["SILENCES"] ?? 0);

test("the resolver sets the engine's idle connections no end", async () => {
  const resolver = await createResolver();
  const answer = await fetch(`${resolver.properties["uri"]}/v1/table/x/describe`, { method: "POST" });
  assert.deepEqual(
    [answer.headers.get("connection"), answer.headers.get("keep-alive")],
    ["keep-alive", null],
  );
  await answer.text();
  await resolver.close();
});

test("calls after a silence reach the resolver", { skip: SILENCES === 0 }, async (t) => {
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const native = loadNative();
  const session = new native.Session(1n, 1n);
  async function callWithGaps(gapMs: number): Promise<void> {
    const resolver = await createResolver();
    t.onTestFinished(resolver.close);
    const engine = await native.Connection.newWithNamespace("rest", resolver.properties, { session });
    for (let round = 0; round <= SILENCES; round++) {
      if (round > 0) await sleep(gapMs);
      const name = tableName(join(directory.path, `${round}.lance`));
      const calls = Array.from({ length: 4 }, () =>
        assert.rejects(engine.openTable(name, []), /was not found/),
      );
      // The requests have gone out when the due timers fire.
      for (const until = performance.now() + 15; performance.now() < until; );
      await Promise.all(calls);
    }
  }
  await Promise.all(Array.from({ length: 20 }, (_, index) => callWithGaps(5_900 + 10 * index)));
});
