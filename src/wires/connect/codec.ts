import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { LanceError, toLanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { ArrivingBytes } from "../../runtime/byte-memory.ts";
import type { LoopPace } from "../../runtime/loop-pace.ts";
import { inSlices } from "../../runtime/pace.ts";
import { SMALL_JSON_BYTES, scanJson } from "../../transcode/json/scan.ts";
import { scanBinary } from "../binary-budget.ts";
import { encodeFrame, encodeFramePieces, type Frame, FrameReader, tooLarge } from "../grpc/frame.ts";
import { unpack } from "../grpc/message.ts";
import { FREE_BYTES, lateMessage, MESSAGE_MS } from "../limits.ts";

/** Encodings of messages. */
export type Codec = "json" | "binary";

/**
 * Bounds of a message in JSON. The library decodes it in a single step, which takes about 12 ns for each byte and 60 ns
 * for each value. Depth is that to which protobuf-es reads JSON, whose messages are deeper than those of REST.
 */
const JSON_BOUNDS = { maxDepth: 100, maxCost: 500_000 } as const;

/** Largest message in JSON, in bytes. */
export const MAX_JSON_MESSAGE_BYTES = 3 * 1024 * 1024;

/** Returns the check of a message in an encoding; a message that takes long to decode waits for its turn of the loop. */
export function messageCheck(message: DescMessage, codec: Codec, pace: LoopPace): MessageCheck {
  const check = codec === "json" ? checkJson : (bytes: Uint8Array) => inSlices(scanBinary(message, bytes));
  return async (bytes) => {
    // The library would replace the faulty bytes, and store another text than the client's.
    if (codec === "json" && !isUtf8(bytes))
      throw new LanceError("InvalidInput", "a message in JSON is not valid UTF-8");
    if (bytes.byteLength <= FREE_BYTES) return;
    if (!pace.enter()) await pace.turn();
    await check(bytes);
    if (!pace.enter()) await pace.turn();
  };
}

async function checkJson(bytes: Uint8Array): Promise<void> {
  if (bytes.byteLength > SMALL_JSON_BYTES) await inSlices(scanJson(bytes, JSON_BOUNDS));
  if (bytes.byteLength > MAX_JSON_MESSAGE_BYTES) {
    throw new LanceError(
      "PayloadTooLarge",
      `a message in JSON is larger than ${MAX_JSON_MESSAGE_BYTES} bytes; a binary message may be larger`,
    );
  }
}

/** Returns the encoding of a request's messages; a GET names it in its query. */
export function codecOf({ method, url = "", headers }: IncomingMessage): Codec {
  const isJson =
    method === "GET"
      ? /[?&]encoding=json(?:&|$)/.test(url)
      : /[/+]json\b/i.test(headers["content-type"] ?? "");
  return isJson ? "json" : "binary";
}

/** Returns the kind of call that a request is by its headers; undefined if it may as well be REST. */
export function callKind({ method, headers }: IncomingMessage): "unary" | "stream" | undefined {
  if (method !== "POST") return undefined;
  const type = headers["content-type"] ?? "";
  if (/^\s*application\/(?:grpc-web|connect\+)/i.test(type)) return "stream";
  const isUnary = /^\s*application\/proto\b/i.test(type) || headers["connect-protocol-version"] !== undefined;
  return isUnary ? "unary" : undefined;
}

/** Whether the body is a message without an envelope, as in a unary call of Connect. */
export function isBare({ headers }: IncomingMessage): boolean {
  return /^\s*application\/(?:json|proto)\b/i.test(headers["content-type"] ?? "");
}

/** Whether the body is compressed as a whole, and is therefore checked where it is unpacked. */
export function isPacked(request: IncomingMessage): boolean {
  const encoding = request.headers["content-encoding"] ?? "identity";
  return isBare(request) && encoding !== "identity";
}

/** Headers that name the encoding of a body, or of the messages in it. */
const ENCODINGS = ["content-encoding", "connect-content-encoding", "grpc-encoding"];

/** Whether messages of a request may be compressed, and longer than their bytes. */
export function mayBePacked({ headers }: IncomingMessage): boolean {
  return ENCODINGS.some((name) => (headers[name] ?? "identity") !== "identity");
}

/** How the gzip of a request unpacks its messages. */
export interface CheckedGzipOptions {
  /** Bytes of the request that are kept. */
  readonly hold: ByteHold;
  /** Check of each message after it is unpacked. */
  readonly check: MessageCheck;
  /** Converts an error to the library's form. */
  readonly errorOf: (error: LanceError) => ConnectError;
}

/** Returns gzip for the messages of a single request, whose unpacked bytes count. */
export function checkedGzip({ hold, check, errorOf }: CheckedGzipOptions): Compression {
  return {
    ...compressionGzip,
    async decompress(bytes, readMaxBytes) {
      if (bytes.length === 0) return new Uint8Array(0);
      try {
        const plain = await unpack(bytes, { maxBytes: readMaxBytes, hold });
        await check(plain);
        return plain;
      } catch (thrown) {
        if (!(thrown instanceof LanceError)) throw thrown;
        // Bytes that are not gzip are a fault of the server to gRPC alone.
        const isBroken = thrown.is("Internal");
        throw errorOf(isBroken ? new LanceError("InvalidInput", thrown.message, { cause: thrown }) : thrown);
      }
    },
  };
}

/** How the body of a request is read. */
export interface BodyOptions {
  readonly hold: ByteHold;
  /** Returns the name of the caller whose bytes they are. */
  readonly senderOf: () => string;
  /** Converts an error to the library's form. */
  readonly errorOf: (error: LanceError) => ConnectError;
  /** Whether the body is a single message, whose total time is limited. */
  readonly isMessage: boolean;
}

/**
 * Yields the pieces of a body, after it takes their bytes from the hold. A reader that stops early leaves the
 * connection to the answer.
 *
 * The iterable throws ConnectError ResourceExhausted, and DeadlineExceeded for a message that does not arrive.
 */
export async function* heldBody(
  request: IncomingMessage,
  { hold, senderOf, errorOf, isMessage }: BodyOptions,
): AsyncGenerator<Uint8Array> {
  const iterator = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  // An error of the request itself would have node destroy its connection, and with it the answer.
  let interrupt: (error: LanceError) => void = () => {};
  const next = () =>
    new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      interrupt = reject;
      iterator.next().then(resolve, reject);
    });
  const patience = isMessage ? setTimeout(() => interrupt(lateMessage()), MESSAGE_MS) : undefined;
  try {
    for (;;) {
      hold.arrive(senderOf, (error) => interrupt(error));
      const { done, value: piece } = await next();
      if (done) return;
      hold.take(piece.length);
      hold.arrived();
      yield piece;
    }
  } catch (thrown) {
    const error = toLanceError(thrown);
    throw error === thrown ? errorOf(error) : thrown;
  } finally {
    clearTimeout(patience);
    hold.arrived();
    void iterator.return?.();
  }
}

/** Yields the body of a request with an empty message. @param isJson whether messages are JSON. */
export async function* emptyBody(isJson: boolean, isBare: boolean): AsyncGenerator<Uint8Array> {
  const message = Buffer.from(isJson ? "{}" : "");
  yield isBare ? message : encodeFrame(message, false);
}

/**
 * Checks a message before the library decodes it.
 *
 * Rejects with a LanceError.
 */
export type MessageCheck = (bytes: Uint8Array) => Promise<void>;

/** How the messages of a body are checked. */
export interface CheckOptions {
  readonly check: MessageCheck;
  /** Whether the body is a bare message instead of messages in envelopes. */
  readonly isBare: boolean;
  /** Largest message, in bytes. */
  readonly maxBytes: number;
  /** Size that the request announces for its body, in bytes. */
  readonly announcedBytes?: number | undefined;
  /** Converts an error to the library's form. */
  readonly errorOf: (error: LanceError) => ConnectError;
}

/**
 * Yields the messages of a body, each after it has passed a check. Compressed messages are checked where they are unpacked.
 *
 * The iterable throws ConnectError ResourceExhausted for a message that is too large, and the errors of the check.
 */
export function checkedBody(
  pieces: AsyncIterable<Uint8Array>,
  { check, isBare, maxBytes, announcedBytes = 0, errorOf }: CheckOptions,
): AsyncIterable<Uint8Array> {
  const inWords = (thrown: unknown) => (thrown instanceof LanceError ? errorOf(thrown) : thrown);
  const checked = async (message: Uint8Array) => {
    try {
      await check(message);
    } catch (thrown) {
      throw inWords(thrown);
    }
  };
  if (!isBare) return checkedFrames(pieces, checked, maxBytes, inWords);
  const admit = (size: number) => {
    if (size > maxBytes) throw errorOf(tooLarge(maxBytes));
  };
  return checkedMessage(pieces, checked, admit, announcedBytes);
}

async function* checkedMessage(
  pieces: AsyncIterable<Uint8Array>,
  check: MessageCheck,
  admit: (size: number) => void,
  announcedBytes: number,
): AsyncGenerator<Uint8Array> {
  admit(announcedBytes);
  const message = new ArrivingBytes();
  for await (const piece of pieces) {
    admit(message.size + piece.byteLength);
    message.push(piece);
  }
  if (message.size === 0) return;
  await check(message.whole());
  yield message.whole();
}

/** The library reads messages in time that grows with the square of the number of their pieces, so that it gets whole ones. */
async function* checkedFrames(
  pieces: AsyncIterable<Uint8Array>,
  check: MessageCheck,
  maxBytes: number,
  inWords: (thrown: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  const reader = new FrameReader(maxBytes);
  const next = (): Frame | undefined => {
    try {
      return reader.next();
    } catch (thrown) {
      throw inWords(thrown);
    }
  };
  for await (const piece of pieces) {
    reader.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    for (let frame = next(); frame !== undefined; frame = next()) {
      if (!frame.compressed) await check(frame.data);
      yield* encodeFramePieces([frame.data], frame.compressed);
    }
  }
  // The library says what is wrong with a message that has begun.
  if (reader.partial) yield Buffer.of(0);
}
