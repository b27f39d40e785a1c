import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { type Call, createCall, type Protocol } from "../namespace/call.ts";
import { abortErrorOf, toConnectError, withLanceErrors } from "./connect-error.ts";
import { withoutQuery } from "./rest/http.ts";
import { type Rpc, requestIdOf, type StreamRpc } from "./rpc.ts";

/** What {@link createConnectHandler} needs. */
export interface ConnectHandlerOptions {
  readonly rpcs: readonly Rpc[];
  readonly log: Logger;
  /** The largest message that is accepted, in bytes, packed and unpacked. */
  readonly maxMessageBytes: number;
}

/** Answers a request of node:http or of the compatibility API of node:http2; false when its path is no rpc's. */
export type ConnectHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

const REQUEST_ID = createContextKey("", { description: "request id" });

/** Serves Connect and gRPC-Web, over HTTP/1.1 and HTTP/2. The protocols themselves are @connectrpc/connect's. */
export function createConnectHandler({ rpcs, log, maxMessageBytes }: ConnectHandlerOptions): ConnectHandler {
  const router = createConnectRouter({
    grpc: false,
    readMaxBytes: maxMessageBytes,
    acceptCompression: [compressionGzip],
  });
  for (const rpc of rpcs) addRpc(rpc);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  function addRpc(rpc: Rpc): void {
    if (rpc.kind === "unary") {
      const implementation = async (request: Message, context: HandlerContext) => {
        const call = begin(rpc.method, context, log);
        try {
          const response = await rpc.handle(request, call);
          copyHeaders(call, context);
          return response;
        } catch (thrown) {
          copyHeaders(call, context);
          throw toConnectError(thrown, call);
        }
      };
      router.rpc(rpc.method, implementation);
    } else {
      // What is large in a stream is Arrow, which brings its own compression.
      const options = { compressMinBytes: maxMessageBytes };
      router.rpc(rpc.method, streamImplementation(rpc, log) as never, options);
    }
  }

  return (request, response) => {
    const handler = handlers.get(withoutQuery(request.url ?? ""));
    if (handler === undefined) return false;
    const requestId = requestIdOf(request.headers["x-request-id"]);
    response.setHeader("x-request-id", requestId);
    // A write over HTTP/2 that waits for its reader hears of neither "drain" nor an error when that leaves. It is
    // told after the call's own signal, which knows better why.
    response.on("close", () => {
      if (!response.writableEnded) setImmediate(() => response.emit("error", new Error("the client left")));
    });
    const values = createContextValues().set(REQUEST_ID, requestId);
    const fail = (error: unknown) => {
      log.debug({ err: error, requestId }, "the exchange with the client broke off");
      response.destroy();
    };
    try {
      handler(universalRequestFromNodeRequest(request, response, undefined, values))
        .then((answer) => universalResponseToNodeResponse(answer, response))
        .catch(fail);
    } catch (error) {
      fail(error);
    }
    return true;
  };
}

function streamImplementation(rpc: StreamRpc, log: Logger): unknown {
  async function* run(requests: AsyncIterable<Message>, context: HandlerContext): AsyncIterable<Message> {
    const call = begin(rpc.method, context, log);
    try {
      for await (const message of rpc.handle(withLanceErrors(requests), call)) {
        copyHeaders(call, context);
        yield message;
      }
      copyHeaders(call, context);
    } catch (thrown) {
      copyHeaders(call, context);
      throw toConnectError(thrown, call);
    }
  }
  switch (rpc.method.methodKind) {
    case "server_streaming":
      return (request: Message, context: HandlerContext) => run(iterableOf(request), context);
    case "client_streaming":
      return async (requests: AsyncIterable<Message>, context: HandlerContext) => {
        let response: Message | undefined;
        for await (const message of run(requests, context)) response = message;
        return response;
      };
    default:
      return run;
  }
}

function begin(method: DescMethod, context: HandlerContext, log: Logger): Call {
  const remaining = context.timeoutMs();
  const controller = new AbortController();
  const abort = () => controller.abort(abortErrorOf(context.signal.reason));
  if (context.signal.aborted) abort();
  else context.signal.addEventListener("abort", abort, { once: true });
  return createCall({
    method,
    protocol: context.protocolName as Protocol,
    requestId: context.values.get(REQUEST_ID),
    headers: Object.assign(Object.create(null), Object.fromEntries(context.requestHeader)),
    signal: controller.signal,
    deadline: remaining === undefined ? undefined : Date.now() + remaining,
    accept: undefined,
    log,
  });
}

function copyHeaders(call: Call, context: HandlerContext): void {
  for (const [name, value] of Object.entries(call.responseHeaders)) context.responseHeader.set(name, value);
}

async function* iterableOf(message: Message): AsyncIterable<Message> {
  yield message;
}
