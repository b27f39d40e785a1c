import assert from "node:assert/strict";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startCollector } from "../support/collector.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgramIn } from "../support/program.ts";

const TRACE = "c".repeat(32);

for (const [backend, place] of [
  ["rest", (port: number) => ["--uri", `http://127.0.0.1:${port}`]],
  ["grpc", (port: number) => ["--address", `127.0.0.1:${port}`]],
] as const) {
  test(`a trace leads through a gateway to its ${backend} upstream, and the logs have its id`, async (t) => {
    const collector = await startCollector();
    const folder = await temporaryDirectory();
    const start = (service: string, ...args: readonly string[]) =>
      startProgramIn(
        {
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=blue",
          OTEL_SERVICE_NAME: service,
          OTEL_BSP_SCHEDULE_DELAY: "10",
        },
        ...["serve", "--port", "0", "--log-level", "debug", ...args],
      );
    const rear = start("rear", "--root", join(folder.path, "root"));
    const front = start("front", "--backend", backend, ...place(await rear.listening()));
    t.onTestFinished(async () => {
      for (const program of [front, rear]) program.child.kill();
      await Promise.all([front.ended, rear.ended]);
      await collector.close();
      await folder.remove();
    });
    const url = `http://127.0.0.1:${await front.listening()}/v1/namespace/a/create`;
    const headers = { traceparent: `00-${TRACE}-${"d".repeat(16)}-01`, "content-type": "application/json" };
    assert.equal((await fetch(url, { method: "POST", headers, body: "{}" })).status, 200);

    // Readiness checks of the upstream have traces of their own.
    const inTrace = () => collector.spans.filter(({ traceId }) => traceId === TRACE);
    const calls = () => inTrace().filter(({ name }) => name.endsWith("/CreateNamespace"));
    await expect.poll(() => calls().length).toBe(2);
    const named = (name: string) => inTrace().find((span) => span.name === name) ?? assert.fail(name);
    const byService = new Map(calls().map((span) => [span.service, span]));
    const upstream = named("upstream");
    assert.equal(upstream.service, "front");
    assert.equal(byService.get("rear")?.parentId, upstream.spanId);
    assert.equal(byService.get("front")?.parentId, "d".repeat(16));
    assert.equal(named("catalog commit").service, "rear");
    assert.equal(collector.headers["x-tenant"], "blue");

    for (const program of [front, rear]) program.child.kill();
    for (const { stderr } of await Promise.all([front.ended, rear.ended]))
      assert.match(stderr, new RegExp(`"traceId":"${TRACE}".*"operation":"CreateNamespace"`));
  });
}
