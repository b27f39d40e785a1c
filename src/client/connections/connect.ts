import { create, type DescMethodClientStreaming, type Message } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { lostAnswer, repeatableOf } from "../../backends/resilience/resilience.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import { bodyFieldOf } from "../../namespace/operations/method-facts.ts";
import type { AnyMethod } from "../../namespace/service.ts";
import { errorOfStatus } from "../../namespace/status-error.ts";
import { SERVER } from "../errors.ts";
import { answerPieces, type Fetch, fetchBody, watchBody } from "../transport/fetch-transport.ts";
import { type NamespaceImplementation, type Properties, readProperties } from "./properties.ts";

/** Properties of `connect("connect", …)`. */
export interface ConnectProperties {
  /** Base URI of the server, without the name of the service, for example `https://catalog.example.com`. */
  readonly uri: string;
  /** `header.<name>` and `headers.<name>` are headers of every call. */
  readonly [header: `header.${string}` | `headers.${string}`]: string;
}

/** Largest message of an answer, in bytes. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Largest piece of the body in a message of an upload, in bytes: servers bound their messages. */
const MAX_PIECE_BYTES = 1024 * 1024;

/** Connects over the Connect protocol and fetch, which browsers support in addition to REST. */
export function openConnect(
  properties: Properties,
  send: Fetch = (url, init) => fetch(url, init),
): NamespaceImplementation {
  const reader = readProperties("connect", properties);
  const uri = reader.required("uri");
  const headers = reader.under("header.", "headers.");
  reader.end();
  const transport = createFetchTransport(uri.replace(/\/+$/, ""), send);
  const entries = LanceNamespaceService.methods.map((method) => [
    method.localName,
    handlerOf(method, transport),
  ]);
  return {
    name: "connect",
    description: uri,
    headers,
    operations: Object.fromEntries(entries) as LanceNamespace,
    // The server's port also serves REST, which @lancedb/lancedb speaks.
    lancedb: {
      implementation: "rest",
      properties: {
        uri,
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [`headers.${name}`, value])),
      },
    },
  };
}

/** Creates the library's protocol over fetch; unlike the library's transport for browsers, it supports uploads. */
export function createFetchTransport(baseUrl: string, send: Fetch): Transport {
  return createTransport({
    baseUrl,
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    async httpClient({ url, method, header, body, signal = new AbortController().signal }) {
      const upload = body === undefined ? {} : await fetchBody(body, signal);
      const answer = await send(url, { method, headers: header, signal, redirect: "error", ...upload });
      const received = new Headers(answer.headers);
      // The platform has decoded the body, and keeps the headers about what was sent.
      if (received.has("content-encoding"))
        for (const name of ["content-encoding", "content-length"]) received.delete(name);
      return { status: answer.status, header: received, body: answerPieces(answer), trailer: new Headers() };
    },
  });
}

function handlerOf(method: AnyMethod, transport: Transport): unknown {
  switch (method.methodKind) {
    case "unary":
      return async (request: Message, call: Call) => {
        try {
          return (await transport.unary(method, call.signal, timeOf(call), headersOf(call), request)).message;
        } catch (thrown) {
          throw errorOfConnect(thrown, call);
        }
      };
    case "client_streaming":
      return async (request: Message, data: AsyncIterable<Uint8Array>, call: Call) => {
        const upload = watchBody(data);
        const messages = uploadMessages(method, request, upload.pieces);
        try {
          const answer = await transport.stream(method, call.signal, timeOf(call), headersOf(call), messages);
          let response: Message | undefined;
          for await (const message of answer.message) response = message;
          return response as Message;
        } catch (thrown) {
          throw upload.failure ?? errorOfConnect(thrown, call);
        }
      };
    case "server_streaming":
      return async function* (request: Message, call: Call) {
        try {
          const requests = only(request);
          const answer = await transport.stream(method, call.signal, timeOf(call), headersOf(call), requests);
          yield* answer.message;
        } catch (thrown) {
          throw errorOfConnect(thrown, call);
        }
      };
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}

/** Yields the request, and then messages that contain only the body. */
async function* uploadMessages(
  { input }: DescMethodClientStreaming,
  request: Message,
  data: AsyncIterable<Uint8Array>,
): AsyncIterable<Message> {
  const field = bodyFieldOf(input) as string;
  yield request;
  for await (const piece of data) {
    for (let start = 0; start < piece.length; start += MAX_PIECE_BYTES) {
      const part = piece.subarray(start, start + MAX_PIECE_BYTES);
      yield create(input, { [field]: create(HttpBodySchema, { data: part }) } as never);
    }
  }
}

async function* only<T>(message: T): AsyncIterable<T> {
  yield message;
}

function timeOf({ deadline }: Call): number | undefined {
  return deadline === undefined ? undefined : Math.max(deadline - Date.now(), 1);
}

function headersOf({ headers, requestId }: Call): Record<string, string> {
  return { ...headers, "x-request-id": requestId };
}

/** Returns the error for a failed call over Connect; if the call ended itself, the reason of the abort. */
export function errorOfConnect(
  thrown: unknown,
  { signal, method, headers }: Pick<Call, "signal" | "method" | "headers">,
): unknown {
  if (signal.aborted && signal.reason instanceof LanceError) return signal.reason;
  if (!(thrown instanceof ConnectError)) {
    return thrown instanceof LanceError
      ? thrown
      : new LanceError("Internal", `cannot read the response of ${SERVER}`, { cause: thrown });
  }
  // The error that fetch throws when the connection fails or is lost. Whether the request was sent is unknown.
  if (thrown.cause instanceof TypeError) {
    const error = new LanceError("ServiceUnavailable", `${SERVER} cannot be reached`, { cause: thrown });
    const isLost = repeatableOf(method, Object.entries(headers).flat()) === "unsent";
    return isLost ? lostAnswer(error) : error;
  }
  if (thrown.cause instanceof LanceError) return thrown.cause;
  const [detail] = thrown.findDetails(ErrorResponseSchema);
  const { code, rawMessage: text, metadata } = thrown;
  return errorOfStatus({ code, text, detail, header: (name) => metadata.get(name), cause: thrown }, method);
}
