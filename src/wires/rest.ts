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
import { type Call, createCall } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import type { Binding } from "../transcode/binding.ts";
import type { Transcoder } from "../transcode/transcoder.ts";
import { readJsonText, readPieces } from "./rest/body.ts";
import { Exchange } from "./rest/exchange.ts";
import { flattenHeaders, type RestRequest, type RestResponse, splitTarget } from "./rest/http.ts";
import { requestIdOf } from "./rpc.ts";

const DEFAULT_MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const TIMEOUT = /^[0-9]{1,15}$/;

/** What {@link createRestHandler} needs. */
export interface RestHandlerOptions {
  /** One for each dialect; the first whose dialect recognises a request answers it, and the last any other. */
  readonly transcoders: readonly Transcoder[];
  readonly service: Service;
  readonly log: Logger;
  /**
   * The largest JSON body, in bytes, packed and unpacked. Default: 16 MiB. Arrow bodies have no limit here:
   * they are passed on piece by piece.
   */
  readonly maxMessageBytes?: number;
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

  function transcoderFor({ headers }: RestRequest, query: string): Transcoder {
    const found = transcoders.find(({ dialect }) => dialect.recognises({ headers, query }));
    return found ?? (transcoders.at(-1) as Transcoder);
  }

  async function serve(exchange: Exchange, query: string): Promise<void> {
    const { request: incoming } = exchange;
    const { dialect, match } = transcoderFor(incoming, query);
    exchange.dialectHeaders = dialect.headers;
    const { binding, segments } = match(
      incoming.method ?? "",
      exchange.path,
      incoming.headers["content-type"],
    );
    const call = begin(exchange, binding, dialect);
    const json = binding.requestBody === "json" ? await readJsonText(exchange, maxMessageBytes) : undefined;
    if (exchange.done) return;
    const request = binding.decode(segments, query, json);
    if (binding.responseBody === "raw") {
      const method = binding.method as DescMethodServerStreaming;
      await sendPieces(exchange, binding, service.download(method, request, call));
      return;
    }
    const response = await answerTo(request, binding, call, exchange);
    if (exchange.done) return;
    const contentType = binding.responseBody === "empty" ? undefined : "application/json";
    exchange.answer(binding.successStatus, contentType, binding.encode(response));
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
    const { path, query } = splitTarget(request.url ?? "");
    const exchange = new Exchange(request, response, path, requestIdOf(request.headers["x-request-id"]), log);
    serve(exchange, query).catch((thrown: unknown) => exchange.fail(thrown));
  };
}

type MessageFields = Message & Record<string, unknown>;

function begin(exchange: Exchange, binding: Binding, dialect: Dialect): Call {
  const headers = flattenHeaders(exchange.request.headers);
  const timeout = timeoutOf(headers["x-request-timeout-ms"]);
  const call = createCall({
    method: binding.method,
    protocol: "rest",
    requestId: exchange.requestId,
    headers,
    signal: exchange.signal,
    deadline: timeout === undefined ? undefined : Date.now() + timeout,
    accept: headers["accept"],
    log: exchange.log,
    // A decoder may go on with the memory of what it gave.
    ownsBody: headers["content-encoding"] === undefined,
    releasesChunks: true,
  });
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
