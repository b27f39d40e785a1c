import type { IncomingMessage, ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { type ByteBudget, type ByteHold, createByteBudget } from "../namespace/byte-budget.ts";
import { type Call, createCall, type Protocol, type RequestAddress } from "../namespace/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../namespace/errors.ts";
import type { NoteRefusal } from "../pipeline/refusals.ts";
import { addressOf } from "./address.ts";
import { checkedBody, heldBody, type MessageCheck, takenBody } from "./connect-body.ts";
import {
  type Codec,
  callKind,
  checkedGzip,
  codecOf,
  isBare,
  isPacked,
  messageCheck,
} from "./connect-codec.ts";
import { earlyAnswer } from "./connect-early.ts";
import {
  abortErrorOf,
  connectErrorOf,
  DEADLINE_PASSED,
  toConnectError,
  withLanceErrors,
} from "./connect-error.ts";
import { stopReading } from "./grpc/server-call.ts";
import type { ErrorDetails } from "./grpc/status.ts";
import { FREE_BYTES } from "./limits.ts";
import { contentLength, hasKnownEnd, isHttp2, withoutQuery } from "./rest/http.ts";
import { discardBody, hasLongRest } from "./rest/linger.ts";
import { pathOf, type Rpc, requestIdOf, type StreamRpc } from "./rpc.ts";
import { DEFAULT_SILENCE_MS, stalled } from "./stall.ts";

/** What {@link createConnectHandler} needs. */
export interface ConnectHandlerOptions {
  readonly rpcs: readonly Rpc[];
  readonly log: Logger;
  /** Is told of requests that fail before they are a call. */
  readonly refused?: NoteRefusal | undefined;
  /** The largest message that is accepted, in bytes, packed and unpacked. */
  readonly maxMessageBytes: number;
  /** What messages take their memory from while they arrive and are worked on. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
  /** The time of unary calls that bring no deadline, in milliseconds; 0 for none. Default: none. */
  readonly defaultDeadlineMs?: number | undefined;
  /** How long a client of HTTP/2 may take nothing of an answer, in milliseconds; 0 for no limit. Default: 60 s. */
  readonly silenceMs?: number | undefined;
  /** Lists the details of errors. Default: the error response of the namespace API. */
  readonly errorDetails?: ErrorDetails | undefined;
  /** The messages that others have inside as `google.protobuf.Any`, for JSON. Default: none. */
  readonly registry?: Registry | undefined;
}

/** Answers a request of node:http or of the compatibility API of node:http2; false when its path is no rpc's. */
export type ConnectHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

const REQUEST_ID = createContextKey("", { description: "request id" });
const HOLD = createContextKey<ByteHold>(createByteBudget().open(), { description: "memory of the request" });
const REQUEST = createContextKey<RequestState>(
  { call: undefined, cutOff() {} },
  { description: "state of the request" },
);
const KNOWN_END = createContextKey(false, { description: "whether the end of the body is known" });
const ADDRESS = createContextKey<RequestAddress | undefined>(undefined, { description: "address" });

/** What has become of a request so far. */
interface RequestState {
  call: Call | undefined;
  /** Ends the answer in a way that the client notices. */
  cutOff(error: LanceError): void;
}

/** What the library refuses by itself, by the status of its answer. */
const REFUSALS: ReadonlyMap<number, ErrorName> = new Map<number, ErrorName>([
  [405, "MethodNotAllowed"],
  [415, "UnsupportedMediaType"],
  [429, "Throttling"],
  [504, "DeadlineExceeded"],
]);

/** Serves Connect and gRPC-Web, over HTTP/1.1 and HTTP/2. The protocols themselves are @connectrpc/connect's. */
export function createConnectHandler(options: ConnectHandlerOptions): ConnectHandler {
  const { rpcs, log, maxMessageBytes, budget = createByteBudget(), refused } = options;
  const { silenceMs = DEFAULT_SILENCE_MS, defaultDeadlineMs = 0, errorDetails, registry } = options;
  const errorOf = (error: LanceError, requestId = "") => connectErrorOf(error, requestId, errorDetails);
  const routes = { json: routesOf("json"), binary: routesOf("binary") };
  const messagePaths = new Set(
    rpcs.filter(({ kind }) => kind === "unary").map(({ method }) => pathOf(method)),
  );

  /** The handlers of messages in one form, which look at each message before it is decoded. */
  function routesOf(codec: Codec): Map<string, Route> {
    const entries = rpcs.map((rpc): [string, Route] => {
      const check = messageCheck(rpc.method.input, codec);
      const router = createConnectRouter({
        grpc: false,
        readMaxBytes: maxMessageBytes,
        ...(registry && { jsonOptions: { registry } }),
        acceptCompression: [checkedGzip(check, errorOf)],
      });
      addRpc(router, rpc);
      return [pathOf(rpc.method), { check, handle: router.handlers[0] as UniversalHandler }];
    });
    return new Map(entries);
  }

  /** What answers in the protocol of a request for a method that there is not; undefined when it is neither's. */
  function unknown(request: IncomingMessage): Route | undefined {
    const kind = callKind(request);
    const rpc = kind && rpcs.find((each) => each.kind === kind);
    const route = rpc && routes.binary.get(pathOf(rpc.method));
    return route && { ...route, refusal: new LanceError("RouteNotFound", "the server has no such method") };
  }

  function addRpc(router: ConnectRouter, rpc: Rpc): void {
    if (rpc.kind === "unary") {
      const implementation = async (request: Message, context: HandlerContext) => {
        const call = begin(rpc.method, context, log, defaultDeadlineMs);
        try {
          const response = await rpc.handle(request, call);
          copyHeaders(call, context);
          return response;
        } catch (thrown) {
          copyHeaders(call, context);
          throw failed(thrown, call);
        }
      };
      router.rpc(rpc.method, implementation);
    } else {
      // What is large in a stream is Arrow, which brings its own compression.
      const options = { compressMinBytes: maxMessageBytes };
      router.rpc(rpc.method, streamImplementation(rpc, log, failed) as never, options);
    }
  }

  /** As {@link toConnectError}; what fails before the pipeline has it is noted. */
  function failed(thrown: unknown, call: Call): ConnectError {
    if (!call.begun) {
      const { requestId, protocol, method } = call;
      refused?.({ protocol, code: toLanceError(thrown).kind, requestId, path: pathOf(method) });
    }
    return toConnectError(thrown, call, errorDetails);
  }

  return (request, response) => {
    const path = withoutQuery(request.url ?? "");
    const route = routes[codecOf(request)].get(path) ?? unknown(request);
    if (route === undefined) return false;
    const { check, handle, refusal } = route;
    const requestId = requestIdOf(request.headers["x-request-id"]);
    response.setHeader("x-request-id", requestId);
    const fail = (error: unknown) => {
      log.debug({ err: error, requestId }, "the exchange with the client broke off");
      // A stream that is only destroyed ends as if nothing were wrong.
      if (isHttp2(response)) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else response.destroy();
    };
    // A write over HTTP/2 that waits for its reader hears of neither "drain" nor an error when that leaves. It is
    // told after the call's own signal, which knows better why.
    const state: RequestState = { call: undefined, cutOff: fail };
    response.on("finish", () => {
      if (state.call === undefined) {
        const protocol = isGrpcWeb(request) ? "grpc-web" : "connect";
        refused?.({
          protocol,
          code: refusal?.kind ?? REFUSALS.get(response.statusCode) ?? "InvalidInput",
          requestId,
          path,
        });
      }
      // Over HTTP/1.1 the rest of a body that was refused stands before the next request.
      if (!isHttp2(response) && !request.complete)
        discardBody(request, () => request.complete || request.destroy());
    });
    // Its response finishes only when the stream closes, for which a client that goes on sending has to be told to stop.
    if (isHttp2(response)) response.stream.on("finish", () => stopReading(response.stream));
    response.on("close", () => {
      if (!response.writableEnded) setImmediate(() => response.emit("error", new Error("the client left")));
    });
    const hold = budget.open(FREE_BYTES);
    const values = createContextValues()
      .set(REQUEST_ID, requestId)
      .set(HOLD, hold)
      .set(REQUEST, state)
      .set(KNOWN_END, hasKnownEnd(request))
      .set(ADDRESS, addressOf(request.headers));
    const inWords = (error: LanceError) => errorOf(error, requestId);
    // The answer is there when the call has ended, or has begun to stream and holds nothing but what arrives.
    const held = heldBody(request, { hold, errorOf: inWords, isMessage: messagePaths.has(path) });
    const options = { isBare: isBare(request), maxBytes: maxMessageBytes, errorOf: inWords };
    const announcedBytes = contentLength(request);
    const checkPlain = isPacked(request) ? () => {} : check;
    const body = refusal
      ? failing(inWords(refusal))
      : checkedBody(held, { ...options, check: checkPlain, announcedBytes });
    const cutOff = () => fail(stalled(silenceMs));
    try {
      const universal = universalRequestFromNodeRequest(request, response, undefined, values);
      // The library would refuse a length without the details of the error.
      universal.header.delete("content-length");
      handle({ ...universal, body })
        .finally(() => hold.release())
        .then(async (answer) => {
          const { body: pieces } = answer;
          const taken = pieces && isHttp2(response) ? takenBody(pieces, silenceMs, cutOff) : pieces;
          const status = refusal && answer.status !== 200 ? refusal.status : answer.status;
          const whole = { ...answer, status, ...(taken && { body: taken }) };
          const isEarly = hasLongRest(request);
          await universalResponseToNodeResponse(
            isEarly ? await earlyAnswer(whole, request) : whole,
            response,
          );
        })
        .catch(fail);
    } catch (error) {
      fail(error);
    }
    return true;
  };
}

/** What answers an rpc whose messages are in one form. */
interface Route {
  readonly check: MessageCheck;
  readonly handle: UniversalHandler;
  /** The error that answers all requests. */
  readonly refusal?: LanceError;
}

/** The body of a request that is refused before it is read. */
// biome-ignore lint/correctness/useYield: it only throws.
async function* failing(error: ConnectError): AsyncGenerator<Uint8Array> {
  throw error;
}

function isGrpcWeb({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.startsWith("application/grpc-web") === true;
}

function streamImplementation(rpc: StreamRpc, log: Logger, failed: typeof toConnectError): unknown {
  async function* run(requests: AsyncIterable<Message>, context: HandlerContext): AsyncIterable<Message> {
    const call = begin(rpc.method, context, log);
    try {
      const hold = context.values.get(HOLD);
      for await (const message of rpc.handle(handedOver(withLanceErrors(requests), hold), call)) {
        copyHeaders(call, context);
        yield message;
      }
      copyHeaders(call, context);
    } catch (thrown) {
      copyHeaders(call, context);
      throw failed(thrown, call);
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

/** Messages that whoever gets them counts from then on; what has arrived of the next one is a piece at most. */
async function* handedOver(messages: AsyncIterable<Message>, hold: ByteHold): AsyncIterable<Message> {
  for await (const message of messages) {
    hold.release();
    yield message;
  }
}

/** @param defaultMs the time of a call that brings no deadline; the library watches over those that do. */
function begin(method: DescMethod, context: HandlerContext, log: Logger, defaultMs = 0): Call {
  const given = context.timeoutMs();
  const remaining = given ?? (defaultMs > 0 ? defaultMs : undefined);
  const controller = new AbortController();
  const expire = () => controller.abort(new LanceError("DeadlineExceeded", DEADLINE_PASSED));
  const timer = given === remaining ? undefined : setTimeout(expire, remaining);
  const abort = () => {
    // The library aborts every call in the end.
    clearTimeout(timer);
    controller.abort(abortErrorOf(context.signal.reason));
  };
  if (context.signal.aborted) abort();
  else context.signal.addEventListener("abort", abort, { once: true });
  const state = context.values.get(REQUEST);
  const call = createCall({
    method,
    protocol: context.protocolName as Protocol,
    requestId: context.values.get(REQUEST_ID),
    headers: Object.assign(Object.create(null), Object.fromEntries(context.requestHeader)),
    address: context.values.get(ADDRESS),
    signal: controller.signal,
    deadline: remaining === undefined ? undefined : Date.now() + remaining,
    accept: undefined,
    log,
    cutOff: (error) => state.cutOff(error),
    hasKnownEnd: context.values.get(KNOWN_END),
  });
  state.call = call;
  return call;
}

function copyHeaders(call: Call, context: HandlerContext): void {
  for (const [name, value] of Object.entries(call.responseHeaders)) context.responseHeader.set(name, value);
  for (const [name, value] of Object.entries(call.responseTrailers ?? {}))
    context.responseTrailer.set(name, value);
}

async function* iterableOf(message: Message): AsyncIterable<Message> {
  yield message;
}
