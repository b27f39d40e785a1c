// Fixtures of this folder's tests: a whole server over a fake service, and raw sockets.
import { connect, type Socket } from "node:net";
import type { FastifyPluginCallback } from "fastify";
import { fakeService, memoryLog } from "../wires/grpc/fixture.ts";
import { createReadiness } from "./app/readiness.ts";
import type { HttpHandler } from "./port/listener.ts";
import { createServer, type ServerOptions } from "./server.ts";

/** Options of a test's server. */
export interface FixtureOptions extends Partial<ServerOptions> {
  /** Answers `/`, paths of one segment, and paths below `/v1/`. Default: the number of received bytes. */
  readonly rest?: HttpHandler;
}

/** Starts a server and makes it ready. */
export async function startServer({ rest = countBytes, ...options }: FixtureOptions = {}) {
  const { log, lines } = memoryLog();
  const readiness = createReadiness();
  readiness.set(true);
  const server = createServer({
    service: fakeService(),
    plugins: [rawPlugin(rest)],
    readiness,
    log,
    ...options,
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  return {
    ...server,
    readiness,
    port,
    lines,
    address: `127.0.0.1:${port}`,
    url: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await server.close({ graceMs: 0 });
    },
  };
}

const countBytes: HttpHandler = (request, response) => {
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
  });
  request.on("end", () => response.end(`rest ${request.method} ${request.url} ${bytes}`));
};

function rawPlugin(answer: HttpHandler): FastifyPluginCallback {
  return (app, _options, done) => {
    for (const url of ["/", "/:name", "/v1/*"]) {
      app.all(url, (request, reply) => {
        reply.hijack();
        answer(request.raw, reply.raw);
      });
    }
    done();
  };
}

/** Opens a raw connection, from an address of the loopback network; `received()` returns the data that has arrived. */
export function rawConnection(port: number, from = "127.0.0.1") {
  const socket: Socket = connect({ port, host: "127.0.0.1", localAddress: from, noDelay: true });
  let text = "";
  socket.on("data", (piece) => {
    text += piece.toString("latin1");
  });
  socket.on("error", () => {});
  return {
    socket,
    received: () => text,
    closed: new Promise<void>((resolve) => socket.on("close", () => resolve())),
  };
}
