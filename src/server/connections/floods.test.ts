import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";
import { fakeService } from "../../../test/fixtures/wires/grpc.ts";
import { type FloodRequest, openFlood } from "../../../test/support/raw-http2.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Refusal } from "../../pipeline/records/refusals.ts";

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
    await expect.poll(() => flood.answered).toBe(COUNT);
    flood.socket.destroy();
  });
}

for (const [when, isOpen] of [
  ["on open connections", true],
  ["with the first bytes of their connections", false],
] as const) {
  test(`thousands of gRPC calls that arrive at once ${when} do not hold up a probe`, async () => {
    await using server = await startServer({});
    const [connections, calls] = [20, 100];
    const request = call("/grpc.health.v1.Health/Check");
    const opened = await Promise.all(Array.from({ length: connections }, () => openFlood(server.port)));
    if (isOpen) {
      for (const each of opened) each.send(request, 1);
      await expect.poll(() => opened.every(({ answered }) => answered === 1)).toBe(true);
    }
    const answered = () => opened.reduce((sum, each) => sum + each.answered, 0);
    for (const each of opened) each.send(request, calls - each.answered);
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    const before = answered();
    assert.ok(before < (connections * calls) / 2, `${before} answers came before the probe's`);
    await expect.poll(answered).toBe(connections * calls);
    for (const { socket } of opened) socket.destroy();
  });
}

/** Counts the messages of a channel of node in each turn of the event loop; returns the most. */
function mostInTurn(channel: string) {
  const counts = new Map<number, number>();
  const count = () => {
    const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
    counts.set(turn, (counts.get(turn) ?? 0) + 1);
  };
  subscribe(channel, count);
  return {
    all: () => [...counts.values()].reduce((sum, each) => sum + each, 0),
    end() {
      unsubscribe(channel, count);
      return Math.max(...counts.values());
    },
  };
}

test("streams of many connections begin and end in several turns of the event loop", async () => {
  await using server = await startServer({});
  const [connections, calls] = [20, 100];
  const watch = call("/grpc.health.v1.Health/Watch");
  const opened = await Promise.all(Array.from({ length: connections }, () => openFlood(server.port)));
  for (const each of opened) each.send(watch, 1);
  await expect.poll(() => opened.every(({ answered }) => answered === 1)).toBe(true);
  const created = mostInTurn("http2.server.stream.created");
  for (const each of opened) each.send(watch, calls - 1);
  await expect.poll(created.all).toBe(connections * (calls - 1));
  assert.ok(created.end() < (connections * calls) / 2);
  await expect.poll(() => opened.every(({ answered }) => answered === calls)).toBe(true);
  const closed = mostInTurn("http2.server.stream.close");
  for (const { socket } of opened) socket.destroy();
  await expect.poll(closed.all).toBe(connections * calls);
  assert.ok(closed.end() < (connections * calls) / 2);
});

test("requests that are reset with their first bytes never begin, and their connection ends", async () => {
  let begun = 0;
  const service = fakeService({
    async unary() {
      begun += 1;
      return create(DescribeTableResponseSchema, {});
    },
  });
  const counted = {
    read() {
      begun += 1;
      return metrics.read();
    },
  };
  await using server = await startServer({ service, metrics: counted, maxConcurrentStreams: COUNT });
  const headers = { ":method": "POST", ":path": "/v1/table/t/describe", ...ADDRESSED };
  const describe = { headers: { ...headers, "content-type": "application/json" }, body: Buffer.from("{}") };
  for (const request of [get("/metrics"), describe]) {
    const flood = await openFlood(server.port);
    flood.send({ ...request, isReset: true }, COUNT);
    // The server closes it with bytes that it has not read, so that the client may meet an error first.
    await new Promise((resolve) => flood.socket.on("close", resolve));
  }
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  assert.equal(server.figures().open, 1);
  assert.ok(begun < 50, `${begun} of them began`);
});

test("resets with the first bytes of a connection end it before Node creates their streams", async () => {
  const faults: unknown[] = [];
  const refused = ({ code, fault }: Refusal) => void faults.push([code, fault]);
  await using server = await startServer({ maxConcurrentStreams: COUNT, refused });
  const created = mostInTurn("http2.server.stream.created");
  // Few enough bytes for a single piece.
  const [few, many] = [20, 300];
  const small: FloodRequest = {
    headers: { ":method": "GET", ":path": "/", ":scheme": "http", ":authority": "a" },
    isReset: true,
  };
  const flood = await openFlood(server.port, { request: small, count: many });
  await new Promise((resolve) => flood.socket.on("close", resolve));
  assert.equal(created.all(), 0);
  assert.deepEqual(faults, [["InvalidInput", "ERR_HTTP2_ERROR"]]);
  const known = await openFlood(server.port, { request: small, count: few });
  await expect.poll(created.all).toBe(few);
  known.socket.destroy();
  created.end();
});

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
