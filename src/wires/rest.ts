import {
  create,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { type Dialect, errorStatus } from "../dialects/dialect.ts";
import { type HttpBody, HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import { type ByteBudget, type ByteHold, createByteBudget } from "../namespace/byte-budget.ts";
import { type Call, createCall } from "../namespace/call.ts";
import { LanceError, toLanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import type { NoteRefusal, Refusal } from "../pipeline/refusals.ts";
import type { Binding } from "../transcode/binding.ts";
import type { Transcoder } from "../transcode/transcoder.ts";
import { addressOf } from "./address.ts";
import { DEFAULT_MAX_MESSAGE_BYTES, FREE_BYTES } from "./limits.ts";
import { checkNoForm, readJsonText, readPieces } from "./rest/body.ts";
import { Exchange } from "./rest/exchange.ts";
import {
  flattenHeaders,
  hasKnownEnd,
  type RestRequest,
  type RestResponse,
  splitTarget,
} from "./rest/http.ts";
import { requestIdOf } from "./rpc.ts";
import { DEFAULT_SILENCE_MS } from "./stall.ts";

const TIMEOUT = /^[0-9]{1,15}$/;

/** What {@link createRestHandler} needs. */
export interface RestHandlerOptions {
  /** One for each dialect; the first whose dialect recognises a request answers it, and the last any other. */
  readonly transcoders: readonly Transcoder[];
  readonly service: Service;
  readonly log: Logger;
  /** Is told of requests that fail before they are a call. */
  readonly refused?: NoteRefusal | undefined;
  /**
   * The largest JSON body, in bytes, packed and unpacked. Default: 16 MiB. Arrow bodies have no limit here:
   * they are passed on piece by piece.
   */
  readonly maxMessageBytes?: number;
  /** What JSON bodies take their memory from, from their first piece to the end of the call. Default: no bound. */
  readonly budget?: ByteBudget;
  /** The time of calls without Arrow bodies that bring no deadline, in milliseconds; 0 for none. Default: none. */
  readonly defaultDeadlineMs?: number;
  /** How long a client of HTTP/2 may take nothing of an answer, in milliseconds; 0 for no limit. Default: 60 s. */
  readonly silenceMs?: number;
}

/** Answers one request of HTTP/1.1 or HTTP/2. It never throws. */
export type RestHandler = (request: RestRequest, response: RestResponse) => void;

/**
 * Serves the REST API by the transcoder's bindings.
 *
 * Every failure, an unknown path included, is answered with the JSON of an error. Every answer has the request's id
 * in `x-request-id`; a request may give its own, and the time that it waits in `x-request-timeout-ms`.
 */
export function createRestHandler(options: RestHandlerOptions): RestHandler {
  const { transcoders, service, log, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const { budget = createByteBudget(), silenceMs = DEFAULT_SILENCE_MS, defaultDeadlineMs = 0 } = options;
  const { refused } = options;

  function transcoderFor({ headers }: RestRequest, query: string): Transcoder {
    const found = transcoders.find(({ dialect }) => dialect.recognises({ headers, query }));
    return found ?? (transcoders.at(-1) as Transcoder);
  }

  async function serve(exchange: Exchange, query: string): Promise<void> {
    const hold = budget.open(FREE_BYTES);
    try {
      await answer(exchange, query, hold);
    } finally {
      hold.release();
    }
  }

  async function answer(exchange: Exchange, query: string, hold: ByteHold): Promise<void> {
    const { request: incoming } = exchange;
    const { dialect, match } = transcoderFor(incoming, query);
    exchange.dialectHeaders = dialect.headers;
    const { "content-type": contentType } = incoming.headers;
    // Node leaves the body of the answer out.
    const method = incoming.method === "HEAD" ? "GET" : (incoming.method ?? "");
    const { binding, segments } = match(method, exchange.path, contentType);
    checkNoForm(contentType);
    const call = begin(exchange, binding, dialect, defaultDeadlineMs);
    const takesJson = binding.requestBody === "json";
    const json = takesJson ? await readJsonText(exchange, maxMessageBytes, hold) : undefined;
    if (exchange.done) return;
    const request = binding.decode(segments, query, json);
    call.begun = true;
    if (binding.responseBody === "raw") {
      const method = binding.method as DescMethodServerStreaming;
      await sendPieces(exchange, binding, service.download(method, request, call));
      return;
    }
    const response = await answerTo(request, binding, call, exchange);
    if (exchange.done) return;
    const answerType = binding.responseBody === "empty" ? undefined : "application/json";
    exchange.answer(binding.successStatus, answerType, binding.encode(response));
  }

  function answerTo(request: Message, binding: Binding, call: Call, exchange: Exchange): Promise<Message> {
    const { rawRequestField } = binding;
    if (rawRequestField === undefined) return service.unary(binding.method as DescMethodUnary, request, call);
    const contentType = exchange.request.headers["content-type"] ?? "";
    (request as MessageFields)[rawRequestField] = create(HttpBodySchema, { contentType });
    const method = binding.method as DescMethodClientStreaming;
    return service.upload(method, request, readPieces(exchange), call);
  }

  return (request, response) => {
    const { exchange, query } = open(request, response, log);
    exchange.silenceMs = silenceMs;
    serve(exchange, query).catch((thrown: unknown) => {
      if (exchange.call?.begun !== true) refused?.(refusalOf(exchange, toLanceError(thrown)));
      exchange.fail(thrown);
    });
  };
}

/** Creates what answers requests of any protocol with an error, in the JSON that failures of REST have. */
export function createHttpRefusal(log: Logger, refused?: NoteRefusal) {
  return (request: RestRequest, response: RestResponse, error: LanceError): void => {
    const { exchange } = open(request, response, log);
    refused?.({ ...refusalOf(exchange, error), protocol: "http" });
    exchange.fail(error);
  };
}

function refusalOf({ requestId, path }: Exchange, { kind }: LanceError): Refusal {
  return { protocol: "rest", code: kind, requestId, path };
}

function open(request: RestRequest, response: RestResponse, log: Logger) {
  const { path, query } = splitTarget(request.url ?? "");
  const requestId = requestIdOf(request.headers["x-request-id"]);
  return { exchange: new Exchange(request, response, path, requestId, log), query };
}

type MessageFields = Message & Record<string, unknown>;

function begin(exchange: Exchange, binding: Binding, dialect: Dialect, defaultMs: number): Call {
  const headers = flattenHeaders(exchange.request.headers);
  const fallback = binding.method.methodKind === "unary" && defaultMs > 0 ? defaultMs : undefined;
  const timeout = timeoutOf(headers["x-request-timeout-ms"]) ?? fallback;
  const call = createCall({
    method: binding.method,
    protocol: "rest",
    requestId: exchange.requestId,
    headers,
    address: addressOf(exchange.request.headers),
    signal: exchange.signal,
    deadline: timeout === undefined ? undefined : Date.now() + timeout,
    accept: headers["accept"],
    log: exchange.log,
    hasKnownEnd: hasKnownEnd(exchange.request),
    // A decoder may go on with the memory of what it gave.
    ownsBody: headers["content-encoding"] === undefined,
    releasesChunks: true,
    cutOff: (error) => exchange.cutOff(error),
  });
  exchange.call = call;
  exchange.responseHeaders = call.responseHeaders;
  const { typeName } = binding.method.input;
  exchange.statusOf = ({ entry }) => errorStatus(dialect, entry.name, typeName) ?? entry.httpStatus;
  if (timeout !== undefined) exchange.expireIn(timeout);
  return call;
}

function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (TIMEOUT.test(header)) return Number(header);
  throw new LanceError("InvalidInput", "x-request-timeout-ms must be a number of milliseconds");
}

/** Sends the bytes of a stream of messages. The head waits for the first one, so that an error has its status. */
async function sendPieces(
  exchange: Exchange,
  binding: Binding,
  messages: AsyncIterable<Message>,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  try {
    let next = await iterator.next();
    const first = next.done ? undefined : bodyOf(next.value, binding);
    exchange.begin(binding.successStatus, first?.contentType || "application/octet-stream");
    for (; !next.done && !exchange.done; next = await iterator.next()) {
      const data = bodyOf(next.value, binding)?.data;
      if (data !== undefined && data.length > 0) await exchange.write(data);
    }
    exchange.finish();
  } finally {
    // The iterator may be waiting for something that never comes; its end is not waited for.
    if (exchange.done) iterator.return?.().catch(() => {});
  }
}

function bodyOf(message: Message, binding: Binding): HttpBody | undefined {
  return (message as MessageFields)[binding.rawResponseField ?? ""] as HttpBody | undefined;
}
