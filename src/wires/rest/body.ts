import { isUtf8 } from "node:buffer";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { ArrivingBytes } from "../../runtime/byte-memory.ts";
import type { LoopPace } from "../../runtime/loop-pace.ts";
import { inSlices } from "../../runtime/pace.ts";
import { MAX_JSON_DEPTH } from "../../runtime/text.ts";
import { type ParsedJson, parseJson } from "../../transcode/json/parse.ts";
import { SMALL_JSON_BYTES, scanJson } from "../../transcode/json/scan.ts";
import { FREE_BYTES, lateMessage, MESSAGE_MS } from "../limits.ts";
import { type DecodedBody, decodeBody } from "./content-encoding.ts";
import type { Exchange } from "./exchange.ts";
import { contentLength, hasBody, type RestRequest } from "./http.ts";

/** How a body of JSON is read. */
export interface JsonOptions {
  /** Maximum size, before and after decompression. */
  readonly maxBytes: number;
  /** Account from which the bytes are taken before they are kept; the caller returns them. */
  readonly hold: ByteHold;
  /** Returns the name of the caller whose bytes they are. */
  readonly senderOf: () => string;
  /** Shares turns of the event loop among large bodies. */
  readonly pace: LoopPace;
}

/**
 * Reads a body of JSON; returns undefined if it is empty. A large text has a turn of the event loop for each step, the
 * last of which parses it, and is returned when there is a turn in which it may be decoded.
 *
 * @throws LanceError PayloadTooLarge, Throttling, DeadlineExceeded for a body that does not arrive,
 *   UnsupportedMediaType for a body whose declared type is not JSON, InvalidInput for a body that is not UTF-8, not
 *   compressed as declared, nested too deeply, too costly, or long and not JSON, Cancelled when the client disconnects.
 */
export async function readJson(
  exchange: Exchange,
  { maxBytes, hold, senderOf, pace }: JsonOptions,
): Promise<string | ParsedJson | undefined> {
  const { request } = exchange;
  if (!hasBody(request)) return undefined;
  const announced = contentLength(request);
  if (announced !== undefined && announced > maxBytes) throw tooLarge(maxBytes);
  const { "content-type": contentType } = request.headers;
  // Only once a body has started: clients send odd content types with empty ones.
  const onStart = () => checkJsonType(contentType);
  if (announced !== undefined && announced > 0) onStart();
  // Most bodies are short and arrive with their heads. Listeners and a timer for the rest would take longer than all other reading.
  if (announced !== undefined && announced <= FREE_BYTES && isLengthOfBytes(request)) {
    await SOON;
    if (request.readableLength === announced) {
      hold.take(announced);
      const body: Buffer = request.read();
      // Without that, the request would not end.
      request.resume();
      return textOf(body);
    }
  }
  const body = await collect(exchange, decodeBody(exchange, hold), { maxBytes, hold, senderOf, onStart });
  if (body.length === 0) return undefined;
  // Most bodies are small, and wait for nothing.
  if (body.length <= FREE_BYTES) return textOf(body);
  const turn = async () => {
    if (!pace.enter()) await pace.turn(exchange);
  };
  await turn();
  const isLong = body.length > SMALL_JSON_BYTES;
  const values = isLong ? await inSlices(scanJson(body, { maxDepth: MAX_JSON_DEPTH })) : 0;
  const text = textOf(body);
  await turn();
  if (!isLong) return text;
  const value = parseJson(text, "request body");
  await turn();
  return { text, value, values };
}

function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw new LanceError("InvalidInput", "request body is not valid UTF-8");
  const text = body.toString("utf8");
  // A byte order mark is not an error (RFC 8259, section 8.1); the library for Connect does not take it for one either.
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * Yields the pieces of a body that passes through unchanged, decompressed, at a pace. It reads nothing ahead of the
 * reader.
 *
 * The iterable throws LanceError InvalidInput for a body that is not compressed as declared, the refusal of the hold for the memory of its
 * decoder, and the reason of the exchange's end if that is first, for example when the client disconnects.
 */
export async function* readPieces(
  exchange: Exchange,
  { hold, senderOf, pace }: Pick<JsonOptions, "hold" | "senderOf" | "pace">,
): AsyncGenerator<Uint8Array> {
  const { request } = exchange;
  if (!hasBody(request)) return;
  const { stream, failure, windowBytes } = decodeBody(exchange, hold);
  let kept = 0;
  const arrive = () => hold.arrive(senderOf, (error) => exchange.cutOff(error));
  arrive();
  try {
    // A reader that stops early must not close the connection, which the answer still needs.
    for await (const piece of stream.iterator({ destroyOnReturn: false })) {
      if (!pace.enter()) await pace.turn(exchange);
      if (exchange.done) break;
      const more = Math.min((piece as Uint8Array).byteLength, windowBytes - kept);
      hold.take(more);
      kept += more;
      hold.arrived();
      yield piece as Uint8Array;
      arrive();
    }
  } catch (thrown) {
    if (exchange.done) throw endOf(exchange);
    throw thrown instanceof LanceError ? thrown : failure(thrown);
  } finally {
    hold.arrived();
  }
  // Over HTTP/2 a stream that the client resets ends like a complete one.
  if (exchange.done) throw endOf(exchange);
}

/** Returns why an exchange has ended without an answer. */
export function endOf(exchange: Exchange): unknown {
  return exchange.ending.reason ?? new LanceError("Cancelled", "the client disconnected");
}

function tooLarge(maxBytes: number): LanceError {
  return new LanceError("PayloadTooLarge", `request body is larger than ${maxBytes} bytes`);
}

/** Media types that a form, and so any page without the server's consent, can send. */
const FORM_TYPE = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i;

/**
 * Refuses the media types of forms, even with empty bodies: an old browser sends them from any page without
 * identifying headers.
 *
 * @throws LanceError UnsupportedMediaType
 */
export function checkNoForm(contentType = ""): void {
  if (!FORM_TYPE.test(contentType)) return;
  throw new LanceError(
    "UnsupportedMediaType",
    `a request must not be ${contentType.split(";", 1)[0]}; JSON is application/json`,
  );
}

function checkJsonType(header: string | undefined): void {
  if (header === undefined || header === "application/json") return;
  const type = (header.split(";", 1)[0] as string).trim().toLowerCase();
  if (type === "" || type === "application/json" || /^application\/[^/]+\+json$/.test(type)) return;
  throw new LanceError("UnsupportedMediaType", `request body must be application/json and not ${type}`);
}

/** Whether the announced length is that of the bytes that node hands over: the body ends there, and needs no decoder. */
function isLengthOfBytes({ httpVersionMajor, headers }: RestRequest): boolean {
  const isEncoded = headers["content-encoding"] !== undefined || headers["transfer-encoding"] !== undefined;
  return httpVersionMajor === 1 && !isEncoded;
}

interface CollectOptions {
  readonly maxBytes: number;
  readonly hold: ByteHold;
  readonly senderOf: () => string;
  /** Called with the first piece, before it is kept. */
  readonly onStart: () => void;
}

/** Calls back after node has handed over a body that arrived with its head. */
const SOON = Promise.resolve();

function collect(
  exchange: Exchange,
  { stream, failure }: DecodedBody,
  { maxBytes, hold, senderOf, onStart }: CollectOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const body = new ArrivingBytes();
    let ended = false;
    const patience = setTimeout(() => fail(lateMessage()), MESSAGE_MS);
    hold.arrive(senderOf, fail);
    stream.on("data", take).on("end", end).on("error", broken).on("close", closed);

    function take(piece: Buffer): void {
      try {
        if (body.size === 0) onStart();
        if (body.size + piece.length > maxBytes) throw tooLarge(maxBytes);
        hold.take(piece.length);
        body.push(piece);
      } catch (thrown) {
        fail(thrown);
      }
    }

    function end(): void {
      ended = true;
      clearTimeout(patience);
      hold.arrived();
      if (exchange.done) reject(endOf(exchange));
      else resolve(body.whole());
    }

    function broken(cause: Error): void {
      fail(failure(cause));
    }

    function closed(): void {
      if (!ended) fail(endOf(exchange));
    }

    function fail(thrown: unknown): void {
      clearTimeout(patience);
      hold.arrived();
      stream.off("data", take).off("end", end).off("error", broken).off("close", closed);
      stream.pause();
      reject(thrown);
    }
  });
}
