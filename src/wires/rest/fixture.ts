import { once } from "node:events";
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type Server,
  request as send,
} from "node:http";
import type { AddressInfo } from "node:net";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import fastify from "fastify";
import { pino } from "pino";
import { afterAll, beforeAll } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Service } from "../../namespace/service.ts";
import { createTranscoder } from "../../transcode/transcoder.ts";
import { httpWires } from "../http-wires.ts";
import { createTargetRewrite } from "./target-rewrite.ts";

const MAX_BYTES = 4096;
export const JSON_TYPE = { "content-type": "application/json" };

type Fields = Record<string, unknown>;

/** Operations of the service by their kind. */
interface Operations {
  unary(request: Fields, call: Call): Promise<Fields>;
  upload(request: Fields, data: AsyncIterable<Uint8Array>, call: Call): Promise<Fields>;
  download(request: Fields, call: Call): AsyncIterable<Fields>;
}

/** Behaviour of the service; each test sets what it needs. */
export const operations: Operations = {
  unary: async () => ({}),
  upload: async () => ({}),
  async *download() {},
};

const answer = (method: DescMethod, init: Fields): Message => create(method.output, init as never);

const service: Service = {
  unary: async (method, request, call) => answer(method, await operations.unary(request as never, call)),
  upload: async (method, request, data, call) =>
    answer(method, await operations.upload(request as never, data, call)),
  async *download(method, request, call) {
    for await (const init of operations.download(request as never, call)) yield answer(method, init);
  },
};

export const logged: string[] = [];
const transcoders = [createTranscoder([LanceNamespaceService])];
const rewrite = createTargetRewrite(transcoders);
export const app = fastify({ rewriteUrl: ({ url = "" }) => rewrite(url) });
app.register(httpWires, {
  rpcs: [],
  transcoders,
  service,
  log: pino({ level: "error" }, { write: (line: string) => void logged.push(line) }),
  maxMessageBytes: MAX_BYTES,
});

export let server: Server;
export let port: number;

/** Starts a server of REST before the tests of a file, and closes it after them. */
export function useRestServer(): void {
  beforeAll(async () => {
    await app.ready();
    server = createServer(app.routing).listen(0, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => server.close().closeAllConnections());
}

export function open(method: string, path: string, headers: Record<string, string> = {}): ClientRequest {
  return send({ port, host: "127.0.0.1", method, path, headers, agent: false });
}

export async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}

export async function exchange(request: ClientRequest, body?: string | Buffer) {
  const responded = once(request, "response");
  // A server that answers early may reset the connection while the rest of the body is still on its way.
  request.on("error", () => {});
  request.end(body);
  const [response] = (await responded) as [IncomingMessage];
  const text = await textOf(response);
  return { status: response.statusCode, headers: response.headers, text };
}

export const post = (path: string, body?: string | Buffer, headers: Record<string, string> = JSON_TYPE) =>
  exchange(open("POST", path, headers), body);

/** Returns a message of a download. */
export const piece = (text: string) => ({
  data: { contentType: "application/vnd.apache.arrow.file", data: Buffer.from(text) },
});
