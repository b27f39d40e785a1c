import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { describe, it } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { createMetrics, type Metrics } from "./metrics.ts";

const PROTOCOLS = ["grpc", "grpc-web", "connect", "rest"] as const;

/** Counts a call of every operation on every protocol in some databases. */
function fill({ calls }: Metrics, databases: number): void {
  const rest = { headers: {}, decisions: [], principal: undefined };
  for (let number = 0; number < databases; number++)
    for (const method of Object.values(LanceNamespaceService.method))
      for (const protocol of PROTOCOLS) {
        calls.began();
        const call = { method, protocol, database: `db${number}`, ...rest };
        calls.ended(call as unknown as Call, "OK", 0.1, 0);
      }
}

describe("the page of metrics", () => {
  for (const [accept, end] of [
    [undefined, "\n"],
    ["application/openmetrics-text", "\n# EOF\n"],
  ] as const) {
    it(`has each metric and each series once, however many there are, for ${accept ?? "all"}`, async () => {
      const metrics = createMetrics();
      fill(metrics, 5);
      const text = String((await metrics.page.read(accept)).content);
      assert.ok(text.endsWith(end));
      const lines = text.split("\n").filter((line) => line !== "");
      const names = lines.map((line) =>
        line.startsWith("# ") ? line : line.slice(0, line.lastIndexOf(" ")),
      );
      assert.equal(new Set(names).size, names.length);
      const series = 5 * Object.keys(LanceNamespaceService.method).length * PROTOCOLS.length;
      assert.equal(names.filter((name) => name.startsWith("lance_gateway_calls_total{")).length, series);
      assert.equal(names.filter((name) => /seconds_count\{.*db\d/.test(name)).length, series);
    });
  }

  it("is written once for all who ask while another is written, after the last of them has asked", async () => {
    let gathered = 0;
    const metrics = createMetrics(async () => {
      gathered += 1;
      return { workers: [], process: [] };
    });
    const first = metrics.page.read();
    const [second, third, other] = [undefined, "text/plain", "application/openmetrics-text"].map((accept) =>
      metrics.page.read(accept),
    );
    assert.notEqual(await first, await second);
    assert.equal(await second, await third);
    assert.notEqual(await second, await other);
    assert.equal(gathered, 3);
  });

  it("lets other work run while many series are written", async () => {
    const metrics = createMetrics();
    fill(metrics, 20);
    await metrics.page.read();
    let isOver = false;
    let turns = 0;
    const reading = metrics.page.read().finally(() => {
      isOver = true;
    });
    for (; !isOver; turns++) await turn();
    await reading;
    assert.ok(turns > 5, String(turns));
  });
});
