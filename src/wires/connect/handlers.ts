import type { IncomingMessage } from "node:http";
import { type ConnectError, createConnectRouter } from "@connectrpc/connect";
import type {
  UniversalHandler,
  UniversalServerRequest,
  UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { senderKey } from "../../namespace/call/caller-key.ts";
import { isRefused, type Reception } from "../../namespace/call/reception.ts";
import type { LanceError } from "../../namespace/errors.ts";
import { type ByteHold, DEFAULT_MAX_MESSAGE_BYTES } from "../../namespace/memory/byte-budget.ts";
import { createLoopPace, type LoopPace, UNPACED } from "../../runtime/loop-pace.ts";
import { originOf } from "../arrival.ts";
import { binaryType, decodeText, inTextMode, isTextMode } from "../grpc/web-text.ts";
import { DEFAULT_SILENCE_MS, stalled, takenBody } from "../limits.ts";
import { contentLength, discardBody, flattenHeaders, hasBody, hasLongRest, isHttp2 } from "../rest/http.ts";
import type { Rpc } from "../rpc.ts";
import { addRpc, type ConnectCallOptions, connectErrorOf } from "./call.ts";
import {
  type Codec,
  checkedBody,
  checkedGzip,
  codecOf,
  emptyBody,
  heldBody,
  isBare,
  isPacked,
  type MessageCheck,
  mayBePacked,
  messageCheck,
} from "./codec.ts";
import { brokenOff, type ConnectExchange, EXCHANGE } from "./exchange.ts";
import { withFrame, withMessage } from "./long-answer.ts";

/** Options of {@link createConnectHandlers}. */
export interface ConnectHandlersOptions extends ConnectCallOptions {
  /** Shares turns of the event loop among their messages. Default: a pace of these handlers alone. */
  readonly pace?: LoopPace | undefined;
  /** Shares turns of the event loop among the messages of probes. Default: they do not wait. */
  readonly probePace?: LoopPace | undefined;
  /**
   * Longest time in which a client of HTTP/2 reads nothing of an answer, in milliseconds; 0 for no limit. Default: 60
   * s.
   */
  readonly silenceMs?: number | undefined;
}

/** The library's handler of an rpc for messages in an encoding, and the check that each message passes first. */
interface CodecHandler {
  readonly check: MessageCheck;
  readonly handle: UniversalHandler;
}

/** Returns the handler of an rpc for the library's adapters. */
export type ConnectHandlers = (rpc: Rpc) => UniversalHandler;

/**
 * Creates the handlers of rpcs with the first call of each, because most methods are never called through these protocols. They are the library's
 * own, with the bounds of this server around the bodies of requests and answers. Requests carry their exchange in the context.
 */
export function createConnectHandlers(options: ConnectHandlersOptions): ConnectHandlers {
  const { pace = createLoopPace(), probePace = UNPACED } = options;
  const handlers = new Map<Rpc, UniversalHandler>();
  return (rpc) => {
    let handler = handlers.get(rpc);
    if (handler === undefined) {
      handler = createHandler(rpc, options, rpc.isProbe ? probePace : pace);
      handlers.set(rpc, handler);
    }
    return handler;
  };
}

function createHandler(rpc: Rpc, options: ConnectHandlersOptions, pace: LoopPace): UniversalHandler {
  const {
    maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES,
    silenceMs = DEFAULT_SILENCE_MS,
    errorDetails,
  } = options;
  const errorOf = (error: LanceError, requestId = "") => connectErrorOf(error, requestId, errorDetails);
  const streamsAnswer = /^(?:server|bidi)_streaming$/.test(rpc.method.methodKind);
  const isMessage = /^(?:unary|server_streaming)$/.test(rpc.method.methodKind);
  const binary = codecHandler("binary");
  // Most methods are never called with JSON, and each of them has half of the library's memory for it.
  let json: CodecHandler | undefined;
  const handlerOf = (codec: Codec) => {
    if (codec === "binary") return binary;
    json ??= codecHandler("json");
    return json;
  };

  /** @param hold bytes of a single request, whose messages the handler may unpack. Default: the handler is for plain messages. */
  function codecHandler(codec: Codec, hold?: ByteHold): CodecHandler {
    const check = messageCheck(rpc.method.input, codec, pace);
    const router = createConnectRouter({
      grpc: false,
      readMaxBytes: maxMessageBytes,
      ...(options.registry && { jsonOptions: { registry: options.registry } }),
      acceptCompression: [hold === undefined ? compressionGzip : checkedGzip({ hold, check, errorOf })],
    });
    addRpc(router, rpc, { ...options, maxMessageBytes, pace });
    return { check, handle: router.handlers[0] as UniversalHandler };
  }

  /** Checks the caller before the message is read; the message of a GET is in its address. */
  async function receive({ request }: ConnectExchange): Promise<Reception | undefined> {
    if (rpc.receive === undefined || !hasBody(request)) return undefined;
    const { certificate } = originOf(request.headers, request.socket);
    return rpc.receive({ method: rpc.method, headers: flattenHeaders(request.headers), certificate });
  }

  /** Returns the body of a request as the library gets it. */
  function bodyOf({ request, hold, refusal, reception, requestId }: ConnectExchange, check: MessageCheck) {
    const inWords = (error: LanceError) => errorOf(error, requestId);
    if (refusal !== undefined) return failing(inWords(refusal));
    if (isRefused(reception)) return emptyBody(codecOf(request) === "json", isBare(request));
    const senderOf = () => senderKey({ reception, peer: originOf(request.headers, request.socket).peer });
    const held = heldBody(request, { hold, senderOf, errorOf: inWords, isMessage });
    return checkedBody(isTextMode(request) ? decodeText(held, inWords) : held, {
      isBare: isBare(request),
      check: isPacked(request) ? async () => {} : check,
      maxBytes: maxMessageBytes,
      announcedBytes: contentLength(request),
      errorOf: inWords,
    });
  }

  async function answer(universal: UniversalServerRequest, exchange: ConnectExchange) {
    const { request, response, hold, refusal } = exchange;
    const [codec, isText] = [codecOf(request), isTextMode(request)];
    const { check, handle } = mayBePacked(request) ? codecHandler(codec, hold) : handlerOf(codec);
    if (refusal === undefined) exchange.reception = await receive(exchange);
    const body = bodyOf(exchange, check);
    // The library knows text mode, and answers that it does not support it.
    if (isText) universal.header.set("content-type", binaryType(universal.header.get("content-type") ?? ""));
    // The library would refuse a length without the details of the error.
    universal.header.delete("content-length");
    // The message of a refused caller is not packed.
    if (isRefused(exchange.reception)) universal.header.delete("content-encoding");
    const handling = handle({ ...universal, body });
    // Only a call that streams its answer goes on when the answer has begun.
    if (streamsAnswer) response.on("close", () => hold.release());
    const handled = await (streamsAnswer ? handling : handling.finally(() => hold.release()));
    const long = await withLong(handled, exchange);
    const made = isText ? inTextMode(long) : long;
    const cutOff = () => exchange.breakOff(stalled(silenceMs));
    const taken = made.body && isHttp2(response) ? takenBody(made.body, silenceMs, cutOff) : made.body;
    const status = refusal && made.status !== 200 ? refusal.status : made.status;
    const whole = { ...made, status, ...(taken && { body: guarded(taken, exchange) }) };
    return hasLongRest(request) ? earlyAnswer(whole, request) : whole;
  }

  const { service, method, requestPath, supportedContentType, protocolNames, allowedMethods } = binary.handle;
  const handler = async (universal: UniversalServerRequest): Promise<UniversalServerResponse> => {
    const exchange = universal.contextValues?.get(EXCHANGE) as ConnectExchange;
    try {
      return await answer(universal, exchange);
    } catch (thrown) {
      exchange.breakOff(thrown);
      throw brokenOff(thrown);
    }
  };
  return Object.assign(handler, {
    ...{ service, method, requestPath, supportedContentType, protocolNames, allowedMethods },
  });
}

/** Returns an answer with the message that the library has not got, if there is one. */
function withLong(handled: UniversalServerResponse, { call, message, request }: ConnectExchange) {
  if (message === undefined || handled.status !== 200) return handled;
  return call?.protocol === "grpc-web" ? withFrame(handled, message) : withMessage(handled, message, request);
}

/** Yields the body of an answer, and breaks it off visibly if it fails or cannot be written. Its end is that of the call. */
async function* guarded(
  pieces: AsyncIterable<Uint8Array>,
  exchange: ConnectExchange,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of pieces) {
      if (exchange.isGone) throw new Error("the client left");
      yield piece;
    }
  } catch (thrown) {
    exchange.breakOff(thrown);
    throw brokenOff(thrown);
  } finally {
    exchange.hold.release();
  }
}

/** The body of a request that is refused before it is read. */
// biome-ignore lint/correctness/useYield: it only throws.
async function* failing(error: ConnectError): AsyncGenerator<Uint8Array> {
  throw error;
}

/**
 * Sends the answer of a call that ends while the body of its request is still arriving over HTTP/1.1. The client gets
 * the whole answer at once, with its length; then the rest of the body is discarded, and the connection closes.
 * Closed earlier, with data of the client in transit, it would be reset and the answer could be lost.
 */
async function earlyAnswer(
  answer: UniversalServerResponse,
  request: IncomingMessage,
): Promise<UniversalServerResponse> {
  const pieces: Uint8Array[] = [];
  for await (const piece of answer.body ?? []) pieces.push(piece);
  const whole = Buffer.concat(pieces);
  const header = new Headers(answer.header);
  header.set("content-length", String(whole.length));
  header.set("connection", "close");

  async function* body(): AsyncGenerator<Uint8Array> {
    yield whole;
    await new Promise<void>((resolve) => discardBody(request, resolve));
  }
  return { ...answer, header, body: body() };
}
