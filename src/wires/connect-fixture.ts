// A server of Connect and gRPC-Web for this folder's tests, with a client for each protocol and version of HTTP.
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import fastify from "fastify";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Service } from "../namespace/service.ts";
import { memoryLog } from "./grpc/fixture.ts";
import { type HttpWiresOptions, httpWires } from "./http-wires.ts";
import { serviceRpcs } from "./rpc.ts";

/** Starts the wires in Fastify, on ports of their own. */
export async function startConnect(
  service: Service,
  maxMessageBytes = 1 << 20,
  parts: Partial<HttpWiresOptions> = {},
) {
  const { log, lines } = memoryLog();
  const app = fastify();
  app.register(httpWires, {
    service,
    rpcs: serviceRpcs(LanceNamespaceService, service),
    transcoders: [],
    log,
    maxMessageBytes,
    ...parts,
  });
  await app.ready();
  const servers = [createHttp1Server(app.routing), createHttp2Server(app.routing as never)];
  const urls: string[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  const [http1 = "", http2 = ""] = urls;
  const transports: [string, Transport][] = [
    ["connect", createConnectTransport({ baseUrl: http1, httpVersion: "1.1" })],
    ["connect", createConnectTransport({ baseUrl: http2, httpVersion: "2", useBinaryFormat: true })],
    ["grpc-web", createGrpcWebTransport({ baseUrl: http1, httpVersion: "1.1" })],
    ["grpc-web", createGrpcWebTransport({ baseUrl: http2, httpVersion: "2" })],
    ["grpc-web", createGrpcWebTransport({ baseUrl: http1, httpVersion: "1.1", useBinaryFormat: false })],
  ];
  return {
    lines,
    http1,
    clients: transports.map(([protocol, transport]) => {
      return { protocol, client: createClient(LanceNamespaceService, transport) };
    }),
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
    },
  };
}
