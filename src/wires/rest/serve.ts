import {
  create,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Dialect } from "../../dialects/dialect.ts";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import { callerKey, senderKey } from "../../namespace/call/caller-key.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { LanceError } from "../../namespace/errors.ts";
import {
  type ByteBudget,
  type ByteHold,
  createByteBudget,
  DEFAULT_MAX_MESSAGE_BYTES,
} from "../../namespace/memory/byte-budget.ts";
import type { Service } from "../../namespace/service.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { createLoopPace, type LoopPace } from "../../runtime/loop-pace.ts";
import { inSlices, type Steps } from "../../runtime/pace.ts";
import type { Binding } from "../../transcode/binding.ts";
import { noteCall, originOf } from "../arrival.ts";
import { timeAllowed } from "../deadline.ts";
import { FREE_BYTES } from "../limits.ts";
import { checkNoForm, endOf, readJson, readPieces } from "./body.ts";
import { type Exchange, LONG_TEXT } from "./exchange.ts";
import { flattenHeaders, hasKnownEnd, hostOf, knownError } from "./http.ts";

const TIMEOUT = /^[0-9]{1,15}$/;

/** Options of REST calls. */
export interface RestCallOptions {
  readonly service: Service;
  readonly log: Logger;
  /** Called for requests that fail before they become a call. */
  readonly refused?: NoteRefusal | undefined;
  /**
   * Largest JSON body, in bytes, packed and unpacked. Default: 16 MiB. Arrow bodies have no limit here: they pass
   * through piece by piece.
   */
  readonly maxMessageBytes?: number | undefined;
  /** Memory budget of JSON bodies, from their first piece to the end of the call. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
  /** Shares turns of the event loop among the bodies of requests. Default: a pace of this wire alone. */
  readonly pace?: LoopPace | undefined;
  /** Deadline of calls without Arrow bodies that bring none, in milliseconds; 0 for none. Default: none. */
  readonly defaultDeadlineMs?: number | undefined;
}

/** The target of a request: a binding in a dialect, with the segments of its path as they were sent. */
export interface Asked {
  readonly binding: Binding;
  readonly dialect: Dialect;
  readonly segments: readonly string[];
}

/** Turns a request into a call and answers it. Rejects if the failure is still to be answered. */
export type ServeCall = (exchange: Exchange, asked: Asked) => Promise<void>;

/** Creates the function that answers the requests of all routes. */
export function createServeCall(options: RestCallOptions): ServeCall {
  const { service, refused, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const { budget = createByteBudget(), pace = createLoopPace(), defaultDeadlineMs = 0 } = options;

  // A single function, because every call passes it, and each asynchronous one costs a promise and its turns.
  return async (exchange, { binding, dialect, segments }) => {
    const hold = budget.open(FREE_BYTES);
    try {
      checkNoForm(exchange.request.headers["content-type"]);
      const call = begin(exchange, binding, dialect, defaultDeadlineMs);
      const takesJson = binding.requestBody === "json";
      if (takesJson) {
        const received = service.receive?.(call);
        call.reception = received instanceof Promise ? await received : received;
        if (exchange.done) return;
      }
      const json =
        takesJson && !isRefused(call.reception)
          ? await readJson(exchange, {
              maxBytes: maxMessageBytes,
              hold,
              senderOf: () => senderKey(call),
              pace,
            })
          : undefined;
      if (exchange.done) return;
      const request = binding.decode(segments, exchange.query, json);
      const { headers } = exchange.request;
      const facts = { headers, host: hostOf(headers) };
      addContext(request, dialect.contextOf?.(binding.method.input.typeName, facts));
      call.begun = true;
      if (binding.responseBody === "raw") {
        const method = binding.method as DescMethodServerStreaming;
        await sendPieces(exchange, binding, service.download(method, request, call));
        return;
      }
      const response = await answerTo(request, binding, call, { exchange, hold });
      if (exchange.done) return;
      const answerType = binding.responseBody === "empty" ? undefined : "application/json";
      const steps = binding.encodeLong(response);
      const made = steps === undefined ? binding.encode(response) : await whileOpen(exchange, steps);
      if (exchange.done) return;
      // Writing a long text takes as long as encoding it.
      if (typeof made === "string" && made.length > LONG_TEXT && !pace.enter()) await pace.turn(exchange);
      exchange.answer(binding.statusOf(response), answerType, made);
    } catch (thrown) {
      if (exchange.call?.begun !== true) refused?.(refusalOf(exchange, thrown));
      // Once its head has gone, Fastify no longer controls an answer.
      if (!exchange.done && !exchange.sent) throw thrown;
      exchange.fail(thrown);
    } finally {
      hold.release();
    }
  };

  function answerTo(
    request: Message,
    binding: Binding,
    call: Call,
    { exchange, hold }: { readonly exchange: Exchange; readonly hold: ByteHold },
  ): Promise<Message> {
    const { rawRequestField } = binding;
    if (rawRequestField === undefined) return service.unary(binding.method as DescMethodUnary, request, call);
    const contentType = exchange.request.headers["content-type"] ?? "";
    (request as MessageFields)[rawRequestField] = create(HttpBodySchema, { contentType });
    const method = binding.method as DescMethodClientStreaming;
    const pieces = readPieces(exchange, { hold, senderOf: () => callerKey(call), pace });
    return service.upload(method, request, pieces, call);
  }
}

/** Runs the steps of an answer, unless its exchange ends before. */
function whileOpen<T>(exchange: Exchange, steps: Steps<T>): Promise<T> {
  return inSlices(steps, () => {
    if (exchange.done) throw endOf(exchange);
  });
}

/** Returns the record of a request that fails before it becomes a call. */
export function refusalOf({ requestId, path, request: { headers } }: Exchange, thrown: unknown) {
  return { protocol: "rest", code: knownError(thrown).kind, requestId, path, headers } as const;
}

type MessageFields = Message & Record<string, unknown>;

/** Adds entries to the context of a request, which override the client's own. */
function addContext(request: Message, entries: Readonly<Record<string, string>> | undefined): void {
  if (entries !== undefined) Object.assign((request as MessageFields)["context"] as object, entries);
}

const NO_CONTENT = 204;
const PARTIAL_CONTENT = 206;

function begin(exchange: Exchange, binding: Binding, dialect: Dialect, defaultMs: number): Call {
  const headers = flattenHeaders(exchange.request.headers);
  const { typeName } = binding.method.input;
  const preference = dialect.preferences.get(typeName);
  if (preference !== undefined) headers["prefer"] ??= preference;
  const given = timeoutOf(headers["x-request-timeout-ms"]);
  const timeout = timeAllowed(given, binding.method.methodKind === "unary" ? defaultMs : 0);
  const { address, peer, certificate } = originOf(exchange.request.headers, exchange.request.socket);
  const call = createCall({
    method: binding.method,
    protocol: "rest",
    requestId: exchange.requestId,
    headers,
    address,
    peer,
    certificate,
    signal: exchange.ending,
    deadline: timeout === undefined ? undefined : Date.now() + timeout,
    accept: headers["accept"],
    log: exchange.log,
    hasKnownEnd: hasKnownEnd(exchange.request),
    // A decoder may continue to use the memory of its output.
    ownsBody: headers["content-encoding"] === undefined,
    releasesChunks: true,
    cutOff: (error) => exchange.cutOff(error),
  });
  if (binding.takesJson) call.takes = "json";
  exchange.call = call;
  noteCall(exchange.request.headers, call);
  exchange.responseHeaders = call.responseHeaders;
  if (timeout !== undefined) exchange.expireIn(timeout);
  return call;
}

/** Returns the time that a client waits, from its header, in milliseconds. @throws LanceError InvalidInput */
export function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (TIMEOUT.test(header)) return Number(header);
  throw new LanceError("InvalidInput", "x-request-timeout-ms must be a number of milliseconds");
}

/**
 * Sends the bytes of a stream of messages. The head waits for the first message, so that an error gets its status. A
 * stream without messages is an answer without content, and a call that names the range of its bytes has answered a
 * part.
 */
async function sendPieces(
  exchange: Exchange,
  binding: Binding,
  messages: AsyncIterable<Message>,
): Promise<void> {
  const iterator = messages[Symbol.asyncIterator]();
  try {
    let next = await iterator.next();
    if (next.done) {
      exchange.answer(NO_CONTENT, undefined, "");
      return;
    }
    const status = "content-range" in exchange.responseHeaders ? PARTIAL_CONTENT : binding.successStatus;
    const contentType = bodyOf(next.value, binding)?.contentType || "application/octet-stream";
    exchange.begin(status, contentType, exchange.call?.responseBytes);
    for (; !next.done && !exchange.done; next = await iterator.next()) {
      const data = bodyOf(next.value, binding)?.data;
      if (data !== undefined && data.length > 0) await exchange.write(data);
    }
    exchange.finish();
  } finally {
    // The iterator may wait forever; its end is not awaited. It also ends where the head of the answer cannot be sent.
    iterator.return?.().catch(() => {});
  }
}

function bodyOf(message: Message, binding: Binding): HttpBody | undefined {
  return (message as MessageFields)[binding.rawResponseField ?? ""] as HttpBody | undefined;
}
