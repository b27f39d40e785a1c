import { type FloodConnection, type FloodRequest, openFlood } from "../../test/support/raw-http2.ts";
import type { Attack } from "./attack.ts";
import { prefix } from "./connections.ts";

const STREAMS = 1_000;
/** Number of connections of an attack with 20,000 calls. */
const CONNECTIONS = 20;

const ADDRESSED = { ":scheme": "http", ":authority": "localhost" };
const get = (path: string) => ({ headers: { ":method": "GET", ":path": path, ...ADDRESSED } });
const call = (path: string): FloodRequest => ({
  headers: {
    ":method": "POST",
    ":path": path,
    ...ADDRESSED,
    "content-type": "application/grpc",
    te: "trailers",
  },
  body: prefix(0),
});

/** Keeps as many requests without credentials open on each connection as it may have. */
function flood(title: string, connections: number, request: FloodRequest): Attack {
  const repeat = async ({ socket, send, untilEnded }: FloodConnection) => {
    for (let count = STREAMS; !socket.destroyed; count += STREAMS) {
      send(request, STREAMS);
      await untilEnded(count);
    }
  };
  return {
    title,
    isFlood: true,
    async launch({ port }) {
      const opened = await Promise.all(Array.from({ length: connections }, () => openFlood(port)));
      for (const connection of opened) void repeat(connection);
    },
  };
}

export const metricsPages = flood("1,000 GETs of /metrics on a connection", 1, get("/metrics"));
export const manyMetricsPages = flood("10,000 GETs of /metrics on 10 connections", 10, get("/metrics"));
export const healthChecks = flood(
  "20,000 calls of grpc.health.v1.Health/Check on 20 connections",
  CONNECTIONS,
  call("/grpc.health.v1.Health/Check"),
);
export const unknownMethods = flood(
  "20,000 calls of an unknown method of gRPC on 20 connections",
  CONNECTIONS,
  call("/a.B/C"),
);

/** Streams that stay open, so that their end is the work. */
export const healthWatches: Attack = {
  title: "20,000 streams of grpc.health.v1.Health/Watch on 20 connections, which leave and come back",
  isFlood: true,
  async launch({ port }) {
    const again = async () => {
      for (;;) {
        const opened = await Promise.all(Array.from({ length: CONNECTIONS }, () => openFlood(port)));
        for (const { send } of opened) send(call("/grpc.health.v1.Health/Watch"), STREAMS);
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        for (const { socket } of opened) socket.destroy();
      }
    };
    void again();
  },
};

/** Requests that are reset at once, until the connection ends; then on another one. */
function resetFlood(what: string, request: FloodRequest): Attack {
  return {
    title: `resets of requests for ${what}, as many as a connection may make`,
    isFlood: true,
    async launch({ port }) {
      const again = async () => {
        for (;;) {
          const { send, socket } = await openFlood(port);
          send({ ...request, isReset: true }, STREAMS);
          await new Promise((resolve) => setTimeout(resolve, 50));
          socket.destroy();
        }
      };
      for (let count = 0; count < CONNECTIONS; count++) void again();
    },
  };
}

export const pageResets = resetFlood("/openapi.json", get("/openapi.json"));
export const metricsResets = resetFlood("/metrics", get("/metrics"));
export const describeResets = resetFlood("a describe over REST", {
  headers: {
    ":method": "POST",
    ":path": "/v1/table/t/describe",
    ...ADDRESSED,
    "content-type": "application/json",
  },
  body: Buffer.from("{}"),
});
