import assert from "node:assert/strict";
import { expect, test } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";
import { type FloodRequest, openFlood } from "../../../test/support/raw-http2.ts";

const COUNT = 1_000;
const ADDRESSED = { ":scheme": "http", ":authority": "localhost" };
const get = (path: string): FloodRequest => ({ headers: { ":method": "GET", ":path": path, ...ADDRESSED } });
const call = (path: string): FloodRequest => ({
  headers: { ":method": "POST", ":path": path, ...ADDRESSED, "content-type": "application/grpc" },
  body: Buffer.alloc(5),
});

const FLOODS: Readonly<Record<string, FloodRequest>> = {
  "the page of metrics": get("/metrics"),
  "a probe": get("/readyz"),
  "an unknown path": get("/nothing/here"),
  "a health check": call("/grpc.health.v1.Health/Check"),
  "a watch of the health": call("/grpc.health.v1.Health/Watch"),
  "an unknown method of gRPC": call("/a.B/C"),
};

const metrics = {
  read: async () => ({ contentType: "text/plain", content: Buffer.alloc(1_000, "figures\n") }),
};

for (const [what, request] of Object.entries(FLOODS)) {
  test(`a thousand requests for ${what} on a connection do not hold up a probe on another one`, async () => {
    await using server = await startServer({ metrics, maxConcurrentStreams: COUNT });
    const flood = await openFlood(server.port);
    // The connection is known to be one of HTTP/2.
    flood.send(request, 1);
    await expect.poll(() => flood.answered).toBe(1);
    flood.send(request, COUNT - 1);
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    assert.ok(flood.answered < COUNT / 2, `${flood.answered} answers came before the probe's`);
    await expect.poll(() => flood.answered, { timeout: 60_000 }).toBe(COUNT);
    flood.socket.destroy();
  });
}

test("requests that wait for their turn cost nothing once their client has left", async () => {
  let reads = 0;
  const counted = {
    read() {
      reads += 1;
      return metrics.read();
    },
  };
  await using server = await startServer({ metrics: counted, maxConcurrentStreams: COUNT });
  const flood = await openFlood(server.port);
  flood.send(get("/metrics"), 1);
  await expect.poll(() => flood.answered).toBe(1);
  flood.send(get("/metrics"), COUNT - 1);
  await expect.poll(() => reads).toBeGreaterThan(1);
  flood.socket.destroy();
  await expect.poll(() => server.figures().open).toBe(0);
  const before = reads;
  assert.equal((await fetch(`${server.url}/metrics`)).status, 200);
  assert.ok(before < COUNT, `all of them were answered`);
  assert.equal(reads, before + 1);
});
