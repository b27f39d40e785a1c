import { create, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { ARROW_FILE, ARROW_STREAM, acceptedArrow, isIpcFile } from "../../arrow/ipc/ipc-forms.ts";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { DEFAULT_DELIMITER, type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import { mayPass, passedBody } from "../../namespace/messages/passed-answer.ts";
import { bodyFieldOf, isRead } from "../../namespace/operations/method-facts.ts";
import { freeAtOnce, WORTH_FREEING_BYTES } from "../../runtime/byte-memory.ts";
import type { ClientBinding } from "../../transcode/client-binding.ts";
import type { LongReader } from "../../transcode/long-answer.ts";
import { FREE_ANSWER_BYTES } from "../resilience/answer-budget.ts";
import { lostAnswer } from "../resilience/resilience.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import { errorOfFailure } from "./errors.ts";
import type { UpstreamResponse } from "./transport/transport.ts";
import { type CallUpstream, tellCache, type UpstreamCall } from "./upstream-call.ts";

/** Context that the handlers of a backend share. */
export interface HandlerOptions {
  readonly callUpstream: CallUpstream;
  readonly policy: HeaderPolicy;
  /** Delimiter between the names in paths. */
  readonly delimiter: string;
  /** Memory of answers that are collected. Default: they are not counted. */
  readonly answers?: ByteBudget;
  /** Default: every answer is read in a single step. */
  readonly long?: LongReader;
}

const JSON_TYPE = "application/json";

/** HTTP status of an answer without a body. */
const NO_CONTENT = 204;
const NO_ROWS = "the upstream's response is empty instead of Arrow";

/** Creates the function that forwards a method. */
export function createHandler(binding: ClientBinding, options: HandlerOptions): unknown {
  const { method } = binding;
  const { callUpstream, policy, long, answers } = options;
  const address = createAddresser(method, options.delimiter);

  function answerOf(response: UpstreamResponse, call: Call): Message | Promise<Message> {
    policy.returned(response.headers, call);
    if (tellCache(response, call) || binding.responseBody === "empty") return create(method.output);
    const { body } = response;
    const [contentType, passes] = [contentTypeOf(response), mayPass(call, "json")];
    if (long?.isLong(body)) {
      const answer = { binding, body, contentType, mayPass: passes };
      return long.read(answer).then((message) => filtered(message, call), unread);
    }
    return filtered(readShort(body.toString("utf8"), contentType, passes), call);
  }

  const readShort: typeof binding.read = (...answer) => {
    try {
      return binding.read(...answer);
    } catch (error) {
      return unread(error);
    }
  };

  function filtered(message: Message, call: Call): Message {
    if (passedBody(message, "json") === undefined) policy.filterContext(message, call);
    return message;
  }

  /** Throws the error of a success that cannot be read; a change is made even then. */
  function unread(error: unknown): never {
    throw isRead(method) ? error : lostAnswer(error);
  }

  async function unary(request: Message, call: Call): Promise<Message> {
    address(request, call);
    return collected({ binding, request, call, accept: JSON_TYPE });
  }

  /** Calls the upstream; the bytes of a collected answer are held until it is read. */
  async function held<T>(
    asked: Omit<UpstreamCall, "hold">,
    read: (response: UpstreamResponse) => T | Promise<T>,
  ): Promise<T> {
    const hold = answers?.open(FREE_ANSWER_BYTES);
    try {
      return await read(await callUpstream({ ...asked, hold }));
    } finally {
      hold?.release();
    }
  }

  const collected = (asked: Omit<UpstreamCall, "hold">) =>
    held(asked, (response) => answerOf(response, asked.call));

  /** Calls the upstream for an answer that is not collected, unless it is an error. */
  const streamed = (asked: Omit<UpstreamCall, "hold">) => held(asked, (response) => response);

  async function upload(request: Message, data: AsyncIterable<Uint8Array>, call: Call): Promise<Message> {
    address(request, call);
    const contentType = mediaTypeOf(request, method);
    const body = { data: released(data, call), contentType };
    return collected({ binding, request, call, accept: JSON_TYPE, upload: body });
  }

  async function* download(request: Message, call: Call): AsyncIterable<Message> {
    address(request, call);
    const field = binding.rawResponseField as string;
    const response = await streamed({ binding, request, call, accept: acceptedArrow(call) });
    policy.returned(response.headers, call);
    let contentType: string | undefined;
    try {
      for await (const data of response.pieces ?? []) {
        contentType ??= arrowTypeOf(response, data);
        yield create(method.output, { [field]: create(HttpBodySchema, { contentType, data }) } as never);
      }
    } catch (thrown) {
      throw errorOfFailure(thrown, call);
    }
    // Arrow without rows has a schema.
    if (contentType === undefined) throw new LanceError("ServiceUnavailable", NO_ROWS);
  }

  /** A row without bytes answers 204 without a message, and one with no bytes answers with an empty message. */
  async function* bytes(request: Message, call: Call): AsyncIterable<Message> {
    address(request, call);
    const field = binding.rawResponseField as string;
    const headers = rangeHeader(call);
    const response = await streamed({ binding, request, call, accept: BYTES, headers });
    policy.returned(response.headers, call);
    if (response.status === NO_CONTENT) return;
    const messageOf = (init: MessageInitShape<typeof HttpBodySchema>) =>
      create(method.output, { [field]: create(HttpBodySchema, init) } as never);
    const pieces = response.pieces?.[Symbol.asyncIterator]();
    try {
      tellRange(response, call);
      yield messageOf({ contentType: BYTES });
      for (let next = await pieces?.next(); next !== undefined && !next.done; next = await pieces?.next())
        yield messageOf({ data: next.value });
    } catch (thrown) {
      throw errorOfFailure(thrown, call);
    } finally {
      // A reader may leave before the first piece, and the answer would keep its connection and its slot.
      await pieces?.return?.();
    }
  }

  switch (method.methodKind) {
    case "unary":
      return unary;
    case "client_streaming":
      return upload;
    case "server_streaming":
      return readsBytes(binding) ? bytes : download;
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}

function contentTypeOf({ headers }: UpstreamResponse): string | undefined {
  const type = headers["content-type"];
  return typeof type === "string" ? type : undefined;
}

/** Returns the media type of a body: the declared type, or if that is not Arrow, the type of its first bytes. */
function arrowTypeOf(response: UpstreamResponse, first: Uint8Array): string {
  const said = contentTypeOf(response) ?? "";
  for (const type of [ARROW_STREAM, ARROW_FILE]) if (said.startsWith(type)) return type;
  return isIpcFile(first) ? ARROW_FILE : ARROW_STREAM;
}

interface Addressed extends Message {
  id?: readonly string[];
  identifier?: string;
  delimiter?: string;
}

/**
 * Returns a function that writes the resolved object into the request, in the upstream's spelling. It throws LanceError InvalidInput for a
 * name that the delimiter of the upstream would split.
 */
function createAddresser({ input }: DescMethod, delimiter: string): (request: Message, call: Call) => void {
  const names = new Set(input.fields.map(({ localName }) => localName));
  if (!names.has("identifier")) {
    // The client's delimiter joins the names in the answer.
    return (request: Addressed) => {
      request.delimiter ??= DEFAULT_DELIMITER;
    };
  }
  return (request: Addressed, { id }) => {
    const identifier = joinIdentifier(id, delimiter);
    // A name may have the delimiter in it, or make one with its neighbor: `a~` and `b` joined with `~~`.
    if (delimiter !== DEFAULT_DELIMITER && !isSplitInto(identifier, delimiter, id)) {
      const text = JSON.stringify(delimiter);
      throw new LanceError(
        "InvalidInput",
        `names joined with ${text}, as the upstream catalog has them, would be split into others`,
      );
    }
    request.id = id;
    request.identifier = identifier;
    request.delimiter = delimiter;
  };
}

/** Whether an identifier, split at a delimiter, has the given names; the root is the delimiter itself. */
function isSplitInto(identifier: string, delimiter: string, names: Identifier): boolean {
  if (names.length === 0) return true;
  const split = identifier.split(delimiter);
  return split.length === names.length && split.every((name, index) => name === names[index]);
}

/**
 * Upper bound on the bytes in transit when a connection requests the next piece: it does so when its buffer is not
 * full.
 */
const CONNECTION_BYTES = 1024 * 1024;

/** Media types are short, and servers cut connections off over long or malformed headers. */
const MEDIA_TYPE = /^[\t\x20-\x7e]{1,1024}$/;

/**
 * Returns the media type of an upload; messages of gRPC and Connect may have any text there.
 *
 * @throws LanceError InvalidInput
 */
function mediaTypeOf(request: Message, { input }: DescMethod): string {
  const body = (request as unknown as Record<string, HttpBody | undefined>)[bodyFieldOf(input) ?? ""];
  const type = body?.contentType || ARROW_STREAM;
  if (MEDIA_TYPE.test(type)) return type;
  throw new LanceError("InvalidInput", "the content type of the body is not a media type");
}

/** Reports every piece when the connection has taken it, and frees its memory some time later. */
async function* released(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  const taken: Uint8Array[] = [];
  let size = 0;
  for await (const piece of data) {
    yield piece;
    call.releaseBody(piece.byteLength);
    if (call.ownsBody !== true || piece.byteLength < WORTH_FREEING_BYTES) continue;
    taken.push(piece);
    for (size += piece.byteLength; size > CONNECTION_BYTES; ) {
      const oldest = taken.shift() as Uint8Array;
      size -= oldest.byteLength;
      freeAtOnce(oldest);
    }
  }
}

/** Headers of an answer that say which bytes it has, and of which version. */
const TOLD = ["accept-ranges", "content-range", "x-lancedb-version"];

/** HTTP status of an answer with a part of the bytes. */
const PARTIAL_CONTENT = 206;

/** Media type of bytes that have no other. */
const BYTES = "application/octet-stream";

/** Whether a method answers with plain bytes, of which a request may name a range: a download that is a GET. */
function readsBytes({ httpMethod, responseBody }: ClientBinding): boolean {
  return httpMethod === "GET" && responseBody === "raw";
}

/**
 * Returns the header that names the range, name and value in turn; none if the client wants all bytes. It wants them, too, unless a
 * condition holds, which nothing here checks; and parts of several ranges would come in a form of their own.
 */
function rangeHeader({ headers }: Call): readonly string[] {
  const range = headers["range"];
  const isSingle = range !== undefined && !range.includes(",") && headers["if-range"] === undefined;
  return isSingle ? ["range", range] : [];
}

/**
 * Passes on which bytes an answer has; the wire derives the status from it.
 *
 * @throws LanceError ServiceUnavailable for a part that does not say which one it is: it would pass for the whole.
 */
function tellRange({ status, headers }: UpstreamResponse, call: Call): void {
  if (status === PARTIAL_CONTENT && typeof headers["content-range"] !== "string") {
    throw new LanceError(
      "ServiceUnavailable",
      "the upstream catalog does not say which part it has answered",
    );
  }
  for (const name of TOLD) {
    const value = headers[name];
    if (typeof value === "string") call.responseHeaders[name] = value;
  }
  const length = Number(headers["content-length"]);
  if (Number.isSafeInteger(length)) call.responseBytes = length;
}
