import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMetrics } from "../../src/observability/metrics/metrics.ts";
import { wideStream } from "../support/arrow.ts";
import { collect } from "../support/collect.ts";
import { sendHttp } from "../support/http.ts";
import { repeats } from "../support/repeats.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const MIB = 1024 * 1024;
const ARROW = "application/vnd.apache.arrow.stream";

/** Memory that may remain after the calls, in bytes: pages that allocators keep for the next calls. */
const KEPT = 64 * MIB;

/** Number of rounds in a wave; `.ci/run` has 10. */
const ROUNDS = repeats("ABORT_ROUNDS", 5);
/** Number of concurrent calls in a round. */
const CALLS = 10;
/** Number of waves that fill the caches of allocators, and of those that must not need more. */
const WARM_WAVES = 3;
const WAVES = 5;
const ALL_CALLS = (WARM_WAVES + WAVES) * ROUNDS * CALLS;

/** Clients that leave in the middle of real data: scans by the engine, and uploads to it. */
describe("clients that go away in the middle of rows", { timeout: 120_000 }, () => {
  let server: DirectoryServer;
  const metrics = createMetrics();
  const body = wideStream(8 * MIB);
  beforeAll(async () => {
    server = await startDirectoryServer({}, { metrics });
    const headers = { "content-type": ARROW };
    const answer = await sendHttp(server.port, { path: "/v1/table/t/create", body, headers });
    assert.equal(answer.status, 200);
  });
  afterAll(() => server.close());

  async function abortedScan(): Promise<void> {
    const headers = { "content-type": "application/json", accept: ARROW };
    const outgoing = request({ port: server.port, method: "POST", path: "/v1/table/t/query", headers });
    outgoing.on("error", () => {});
    outgoing.end("{}");
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    answer.on("error", () => {});
    await once(answer, "data");
    outgoing.destroy();
  }
  async function abortedUpload(): Promise<void> {
    const headers = { "content-type": ARROW, "content-length": body.byteLength };
    const outgoing = request({ port: server.port, method: "POST", path: "/v1/table/t/insert", headers });
    outgoing.on("error", () => {});
    await new Promise((resolve) => outgoing.write(body.subarray(0, 2 * MIB), resolve));
    outgoing.destroy();
  }

  /** Returns the number of calls that the server has ended. */
  async function endedCalls(): Promise<number> {
    const text = String((await metrics.page.read()).content);
    const counts = text.matchAll(/^lance_gateway_calls_total\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /**
   * The garbage collector frees the engine's results, so it runs before every measurement; memory that it cannot free
   * is a leak. Calls that kept their megabytes would raise the measurements by gigabytes.
   */
  async function assertFlat(call: () => Promise<void>): Promise<void> {
    const wave = async () => {
      const before = await endedCalls();
      for (let round = 0; round < ROUNDS; round++) await Promise.all(Array.from({ length: CALLS }, call));
      await expect.poll(endedCalls).toBe(before + ROUNDS * CALLS);
      collect();
      // The engine frees in the next turn what the collector has found.
      await turn();
      return process.memoryUsage.rss();
    };
    const waves = async (count: number) => {
      const marks: number[] = [];
      for (let round = 0; round < count; round++) marks.push(await wave());
      return marks;
    };
    const before = Math.max(...(await waves(WARM_WAVES)));
    const grown = Math.min(...(await waves(WAVES))) - before;
    assert.ok(grown < KEPT, `the process grew by ${Math.round(grown / MIB)} MiB`);
    const count = await sendHttp(server.port, {
      path: "/v1/table/t/count_rows",
      body: Buffer.from("{}"),
      headers: { "content-type": "application/json" },
    });
    assert.equal(count.status, 200);
  }

  test(`${ALL_CALLS} scans whose clients leave after the first piece leave the memory flat`, () =>
    assertFlat(abortedScan));

  test(`${ALL_CALLS} uploads that break off leave the memory flat, and nothing on the disk`, async () => {
    await assertFlat(abortedUpload);
    const names = await readdir(join(server.root, "data"));
    assert.deepEqual(
      names.filter((name) => name.startsWith(".")),
      [],
    );
    assert.equal((await readdir(join(server.root, "data", "t.lance", "_versions"))).length, 2);
  });
});
