import type { IncomingMessage } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { LanceError, toLanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { ArrivingBytes } from "../../runtime/byte-memory.ts";
import { encodeFrame, encodeFramePieces, type Frame, FrameReader, tooLarge } from "../grpc/frame.ts";
import { lateMessage, MESSAGE_MS } from "../limits.ts";

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
