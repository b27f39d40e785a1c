// A server of Connect and gRPC-Web for this folder's tests, with a client for each protocol and version of HTTP.
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { createClient, type Transport } from "@connectrpc/connect";
import { createTransport } from "@connectrpc/connect/protocol-grpc-web";
import {
  createConnectTransport,
  createGrpcWebTransport,
  createNodeHttpClient,
} from "@connectrpc/connect-node";
import fastify from "fastify";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Service } from "../../namespace/service.ts";
import { memoryLog } from "../grpc/fixture.ts";
import { type HttpWiresOptions, httpWires } from "../http-wires.ts";
import { serviceRpcs } from "../rpc.ts";

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
    ["grpc-web", createTextTransport(http1, "1.1")],
    ["grpc-web", createTextTransport(http2, "2")],
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

/** Returns a client of gRPC-Web whose bodies are in base64 in both directions, as browsers without streams send and read them. */
function createTextTransport(baseUrl: string, httpVersion: "1.1" | "2"): Transport {
  const send = createNodeHttpClient({ httpVersion });
  return createTransport({
    baseUrl,
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 1024,
    readMaxBytes: 0xffffffff,
    writeMaxBytes: 0xffffffff,
    async httpClient(request) {
      const header = new Headers(request.header);
      header.set("content-type", "application/grpc-web-text");
      const answer = await send({
        ...request,
        header,
        ...(request.body && { body: inBase64(request.body) }),
      });
      if (answer.header.get("content-type") !== "application/grpc-web-text+proto") return answer;
      const plain = new Headers(answer.header);
      plain.set("content-type", "application/grpc-web+proto");
      return { ...answer, header: plain, body: fromBase64(answer.body) };
    },
  });
}

/** Encodes each piece by itself, with padding, and cuts what it sends where no group of characters ends. */
async function* inBase64(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = "";
  for await (const piece of pieces) {
    const text = rest + Buffer.from(piece).toString("base64");
    rest = text.slice(-3);
    yield Buffer.from(text.slice(0, -3));
  }
  yield Buffer.from(rest);
}

async function* fromBase64(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let text = "";
  for await (const piece of pieces) {
    text += Buffer.from(piece).toString("latin1");
    const groups = text.slice(0, text.length - (text.length % 4)).match(/.{4}/g) ?? [];
    text = text.slice(groups.length * 4);
    yield Buffer.concat(groups.map((group) => Buffer.from(group, "base64")));
  }
  if (text !== "") throw new Error(`the answer ends with ${text}`);
}
