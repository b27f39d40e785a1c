import { create, type DescMethod, type Message, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Call, createCall, type Protocol } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { isLongMessage } from "../../namespace/messages/message-steps.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import type { LoopPace } from "../../runtime/loop-pace.ts";
import { noteCall, originOf } from "../arrival.ts";
import { deadlinePassed, startDeadline, timeAllowed } from "../deadline.ts";
import { type ErrorDetails, lanceDetails } from "../grpc/status.ts";
import { FREE_BYTES } from "../limits.ts";
import { hasKnownEnd } from "../rest/http.ts";
import { keptBytes, pathOf, type Rpc, type StreamRpc, type UnaryRpc } from "../rpc.ts";
import { codecOf, mayBePacked } from "./codec.ts";
import { type ConnectExchange, EXCHANGE } from "./exchange.ts";
import { encodeLong } from "./long-answer.ts";

/** Options of Connect and gRPC-Web calls. */
export interface ConnectCallOptions {
  readonly log: Logger;
  /** Called for requests that fail before they become a call. */
  readonly refused?: NoteRefusal | undefined;
  /** Largest accepted message, in bytes, packed and unpacked. Default: 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Deadline of unary calls that bring none, in milliseconds; 0 for none. Default: none. */
  readonly defaultDeadlineMs?: number | undefined;
  /** Lists the details of errors. Default: the error response of the namespace API. */
  readonly errorDetails?: ErrorDetails | undefined;
  /** Messages that may appear inside `google.protobuf.Any`, for JSON. Default: none. */
  readonly registry?: Registry | undefined;
}

interface PacedOptions extends ConnectCallOptions {
  /** Shares turns of the event loop among the messages. */
  readonly pace: LoopPace;
}

/** Adds the implementation of an rpc to the library's router. */
export function addRpc(router: ConnectRouter, rpc: Rpc, options: PacedOptions): void {
  if (rpc.kind === "unary") {
    router.rpc(rpc.method, unaryImplementation(rpc, options));
    return;
  }
  // Large messages of a stream contain Arrow, which has its own compression.
  const uncompressed = { compressMinBytes: options.maxMessageBytes ?? Number.POSITIVE_INFINITY };
  router.rpc(rpc.method, streamImplementation(rpc, options) as never, uncompressed);
}

function unaryImplementation(rpc: UnaryRpc, options: PacedOptions) {
  return async (request: Message, context: HandlerContext) => {
    const call = begin(rpc.method, context, options.log, options.defaultDeadlineMs);
    try {
      await turnAfterDecoding(context, options.pace);
      const response = await rpc.handle(request, call);
      copyHeaders(call, context);
      return await encodedAhead(response, call, context, options);
    } catch (thrown) {
      copyHeaders(call, context);
      throw failed(thrown, call, context, options);
    }
  };
}

/** Encodes a long answer in steps: the library gets an empty message, in whose place its exchange has the bytes. */
async function encodedAhead(
  answer: Message,
  { method, signal }: Call,
  context: HandlerContext,
  { registry }: PacedOptions,
): Promise<Message> {
  const type = method.output;
  if (!isLongMessage(type, answer)) return answer;
  const exchange = exchangeOf(context);
  const codec = codecOf(exchange.request);
  exchange.message = await encodeLong(type, answer, { codec, json: { registry }, signal });
  return create(type);
}

function streamImplementation(rpc: StreamRpc, options: PacedOptions): unknown {
  async function* run(requests: AsyncIterable<Message>, context: HandlerContext): AsyncIterable<Message> {
    const call = begin(rpc.method, context, options.log);
    try {
      const { hold } = exchangeOf(context);
      if (rpc.method.methodKind === "server_streaming") await turnAfterDecoding(context, options.pace);
      for await (const message of rpc.handle(handedOver(withLanceErrors(requests), hold, rpc.method), call)) {
        copyHeaders(call, context);
        yield message;
      }
      copyHeaders(call, context);
    } catch (thrown) {
      copyHeaders(call, context);
      throw failed(thrown, call, context, options);
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

/** The library decodes a message in a single step, in whose turn of the event loop nothing else starts if it was long. */
async function turnAfterDecoding(context: HandlerContext, pace: LoopPace): Promise<void> {
  const { request, hold } = exchangeOf(context);
  const isLong = hold.bytes > FREE_BYTES || mayBePacked(request);
  if (isLong && !pace.enter()) await pace.turn();
}

/** Converts as {@link toConnectError}, and records failures that precede the pipeline. */
function failed(
  thrown: unknown,
  call: Call,
  context: HandlerContext,
  { refused, errorDetails }: ConnectCallOptions,
): ConnectError {
  if (!call.begun) {
    const { requestId, protocol, method } = call;
    const { headers } = exchangeOf(context).request;
    refused?.({ protocol, code: toLanceError(thrown).kind, requestId, path: pathOf(method), headers });
  }
  return toConnectError(thrown, call, errorDetails);
}

/** @param defaultMs deadline of a call that brings none; the library watches the deadlines of the others. */
function begin(method: DescMethod, context: HandlerContext, log: Logger, defaultMs = 0): Call {
  const given = context.timeoutMs();
  const remaining = timeAllowed(given, defaultMs);
  const controller = new AbortController();
  const timer =
    given !== undefined || remaining === undefined
      ? undefined
      : startDeadline(remaining, (error) => controller.abort(error));
  const abort = () => {
    // The library aborts every call in the end.
    timer?.clear();
    controller.abort(abortErrorOf(context.signal.reason));
  };
  if (context.signal.aborted) abort();
  else context.signal.addEventListener("abort", abort, { once: true });
  const exchange = exchangeOf(context);
  const call = createCall({
    method,
    protocol: context.protocolName as Protocol,
    requestId: exchange.requestId,
    headers: Object.assign(Object.create(null), Object.fromEntries(context.requestHeader)),
    ...originOf(exchange.request.headers, exchange.request.socket),
    signal: controller.signal,
    deadline: remaining === undefined ? undefined : Date.now() + remaining,
    accept: undefined,
    log,
    cutOff: (error) => exchange.breakOff(error),
    hasKnownEnd: hasKnownEnd(exchange.request),
  });
  call.reception = exchange.reception;
  exchange.call = call;
  noteCall(exchange.request.headers, call);
  return call;
}

function exchangeOf({ values }: HandlerContext): ConnectExchange {
  return values.get(EXCHANGE) as ConnectExchange;
}

function copyHeaders(call: Call, context: HandlerContext): void {
  for (const [name, value] of Object.entries(call.responseHeaders)) context.responseHeader.set(name, value);
  for (const [name, value] of Object.entries(call.responseTrailers ?? {}))
    context.responseTrailer.set(name, value);
}

/** Yields the messages of a request. Their bytes count as long as the call keeps them; at most a piece of the next message has arrived. */
async function* handedOver(
  messages: AsyncIterable<Message>,
  hold: ByteHold,
  method: DescMethod,
): AsyncIterable<Message> {
  const keeps = keptBytes(method);
  let kept = 0;
  for await (const message of messages) {
    kept += keeps(message, hold.bytes - kept);
    hold.release(hold.bytes - kept);
    yield message;
    if (method.methodKind === "bidi_streaming") kept = 0;
  }
}

async function* iterableOf(message: Message): AsyncIterable<Message> {
  yield message;
}

/** Returns the error that a client sees for a thrown value, and logs what clients must not see. */
export function toConnectError(thrown: unknown, call: Call, detailsOf?: ErrorDetails): ConnectError {
  const error = toLanceError(thrown);
  if (error !== thrown) {
    call.log.error({ err: thrown, requestId: call.requestId }, "Connect call failed with an unknown error");
  }
  return connectErrorOf(error, call.requestId, detailsOf);
}

/** Converts an error of the table to the library's form. */
export function connectErrorOf(
  error: LanceError,
  requestId: string,
  detailsOf: ErrorDetails = lanceDetails,
): ConnectError {
  const details = [...detailsOf(error, requestId)];
  return new ConnectError(error.message, error.entry.grpcCode, error.headers, details, error);
}

const ROWS: Readonly<Partial<Record<Code, ErrorName>>> = {
  [Code.Canceled]: "Cancelled",
  [Code.InvalidArgument]: "InvalidInput",
  [Code.DeadlineExceeded]: "DeadlineExceeded",
  [Code.ResourceExhausted]: "PayloadTooLarge",
  [Code.Unimplemented]: "Unsupported",
  [Code.Aborted]: "Cancelled",
};

/**
 * Yields the messages of a request; faults that the library finds in them, and a body that breaks off, become
 * LanceErrors.
 */
export async function* withLanceErrors<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) {
      throw new LanceError("Cancelled", "the request broke off", { cause: thrown });
    }
    if (thrown.cause instanceof LanceError) throw thrown.cause;
    throw new LanceError(ROWS[thrown.code] ?? "Internal", thrown.rawMessage, { cause: thrown });
  }
}

/** Returns the reason of a call's signal: the deadline, or a client that has disconnected. */
export function abortErrorOf(reason: unknown): LanceError {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    return deadlinePassed();
  }
  return new LanceError("Cancelled", "the client cancelled the call");
}
