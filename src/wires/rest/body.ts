import { isUtf8 } from "node:buffer";
import type { ByteHold } from "../../namespace/byte-budget.ts";
import { LanceError } from "../../namespace/errors.ts";
import { MAX_JSON_DEPTH } from "../../namespace/json.ts";
import { checkJson } from "../../transcode/json-scan.ts";
import { lateMessage, MESSAGE_MS } from "../limits.ts";
import { type DecodedBody, decodeBody } from "./content-encoding.ts";
import type { Exchange } from "./exchange.ts";
import { contentLength, hasBody } from "./http.ts";

/**
 * Reads a body of JSON text; undefined when it is empty.
 *
 * @param maxBytes the most bytes, before and after decompression.
 * @param hold what the bytes are taken from before they are kept; the caller gives them back.
 * @throws LanceError PayloadTooLarge, Throttling, DeadlineExceeded for a body that does not come, UnsupportedMediaType for a body that is said not to be JSON, InvalidInput
 * for a body that is not UTF-8, not compressed as it says, nested too deeply or has too much in it, Cancelled when the client goes away.
 */
export async function readJsonText(
  exchange: Exchange,
  maxBytes: number,
  hold: ByteHold,
): Promise<string | undefined> {
  const { request } = exchange;
  if (!hasBody(request)) return undefined;
  const announced = contentLength(request);
  if (announced !== undefined && announced > maxBytes) throw tooLarge(maxBytes);
  const { "content-type": contentType } = request.headers;
  // Only once it is known that there is a body: clients give odd content types for empty ones.
  const onStart = () => checkJsonType(contentType);
  if (announced !== undefined && announced > 0) onStart();
  const body = await collect(exchange, decodeBody(exchange), { maxBytes, hold, onStart });
  if (body.length === 0) return undefined;
  checkJson(body, MAX_JSON_DEPTH);
  if (!isUtf8(body)) throw new LanceError("InvalidInput", "request body is not valid UTF-8");
  return body.toString("utf8");
}

/**
 * The pieces of a body that is passed on as it is, decompressed. Nothing is read ahead of the reader.
 *
 * The iterable throws LanceError InvalidInput for a body that is not compressed as it says, and the reason of the
 * exchange's end when that comes first, as when the client goes away.
 */
export async function* readPieces(exchange: Exchange): AsyncGenerator<Uint8Array> {
  const { request } = exchange;
  if (!hasBody(request)) return;
  const { stream, failure } = decodeBody(exchange);
  try {
    // A reader that stops early must not take the connection, and the answer, with it.
    for await (const piece of stream.iterator({ destroyOnReturn: false })) {
      if (exchange.done) break;
      yield piece as Uint8Array;
    }
  } catch (thrown) {
    throw exchange.done ? endOf(exchange) : failure(thrown);
  }
  // Over HTTP/2 a stream that the client resets ends like a whole one.
  if (exchange.done) throw endOf(exchange);
}

function endOf(exchange: Exchange): unknown {
  return exchange.signal.reason ?? new LanceError("Cancelled", "the client has gone");
}

function tooLarge(maxBytes: number): LanceError {
  return new LanceError("PayloadTooLarge", `request body is larger than ${maxBytes} bytes`);
}

/** The media types that a form, and any page without the server's consent, can send. */
const FORM_TYPE = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i;

/**
 * Refuses what a form can send, bodies that are empty too: an old browser sends it from any page and says nothing else.
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

interface CollectOptions {
  readonly maxBytes: number;
  readonly hold: ByteHold;
  /** Called with the first piece, before it is kept. */
  readonly onStart: () => void;
}

function collect(
  exchange: Exchange,
  { stream, failure }: DecodedBody,
  { maxBytes, hold, onStart }: CollectOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    let ended = false;
    const patience = setTimeout(() => fail(lateMessage()), MESSAGE_MS);
    stream.on("data", take).on("end", end).on("error", broken).on("close", closed);

    function take(piece: Buffer): void {
      try {
        if (size === 0) onStart();
        size += piece.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        hold.take(piece.length);
        pieces.push(piece);
      } catch (thrown) {
        fail(thrown);
      }
    }

    function end(): void {
      ended = true;
      clearTimeout(patience);
      if (exchange.done) reject(endOf(exchange));
      else resolve(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size));
    }

    function broken(cause: Error): void {
      fail(failure(cause));
    }

    function closed(): void {
      if (!ended) fail(endOf(exchange));
    }

    function fail(thrown: unknown): void {
      clearTimeout(patience);
      stream.off("data", take).off("end", end).off("error", broken).off("close", closed);
      stream.pause();
      reject(thrown);
    }
  });
}
