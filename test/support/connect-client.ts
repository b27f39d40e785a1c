import { Agent } from "node:http";
import type { DescMethodStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { ErrorResponseSchema } from "../../src/gen/lance/namespace/v1/common_pb.ts";
import {
  CallError,
  collect,
  createClient,
  type Headers,
  type ProtocolClient,
  uploadMessages,
} from "./client.ts";

/** Creates a client of Connect over HTTP/1.1. */
export function createConnectClient(port: number, headers?: Headers): ProtocolClient {
  const agent = ownConnections();
  const transport = createConnectTransport({
    baseUrl: url(port),
    httpVersion: "1.1",
    nodeOptions: { agent },
  });
  return clientOf(transport, () => agent.destroy(), headers);
}

/** Creates a client of Connect over HTTP/2 with prior knowledge. */
export function createConnectHttp2Client(port: number, headers?: Headers): ProtocolClient {
  const sessionManager = new Http2SessionManager(url(port));
  const transport = createConnectTransport({ baseUrl: url(port), httpVersion: "2", sessionManager });
  return clientOf(transport, () => sessionManager.abort(), headers);
}

/** Creates a client of gRPC-Web over HTTP/1.1. */
export function createGrpcWebClient(port: number, headers?: Headers): ProtocolClient {
  const agent = ownConnections();
  const transport = createGrpcWebTransport({
    baseUrl: url(port),
    httpVersion: "1.1",
    nodeOptions: { agent },
  });
  return clientOf(transport, () => agent.destroy(), headers);
}

/**
 * Keeps connections of HTTP/1.1 for a single client. In Node's own agent all clients share them, so that some are idle
 * for long even if each client calls often.
 */
const ownConnections = (): Agent => new Agent({ keepAlive: true });

function url(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Creates a client over any transport of connect-node. */
export function clientOf(
  transport: Transport,
  close: () => void = () => {},
  headers?: Headers,
): ProtocolClient {
  const unary = async (method: DescMethodUnary, request: Message) =>
    (await transport.unary(method, undefined, undefined, headers, request)).message;

  const stream = async (method: DescMethodStreaming, requests: AsyncIterable<Message>) =>
    (await transport.stream(method, undefined, undefined, headers, requests)).message;

  const client = createClient({
    unary: (method, request) => failing(unary(method, request)),
    upload: (method, request, body) =>
      failing(stream(method, uploadMessages(method, request, body)).then(only)),
    download: (method, request) =>
      failing(stream(method, once(request)).then((messages) => collect(method, messages))),
  });
  return { client, close };
}

async function* once<T>(value: T): AsyncIterable<T> {
  yield value;
}

async function only(messages: AsyncIterable<Message>): Promise<Message> {
  const all: Message[] = [];
  for await (const message of messages) all.push(message);
  if (all.length !== 1) throw new Error(`expected one message, got ${all.length}`);
  return all[0] as Message;
}

async function failing<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) throw thrown;
    const [detail] = thrown.findDetails(ErrorResponseSchema);
    throw new CallError(thrown.rawMessage, { code: detail?.code, grpcCode: thrown.code }, { cause: thrown });
  }
}
