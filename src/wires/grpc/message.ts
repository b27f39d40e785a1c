import { Readable } from "node:stream";
import { constants, createGunzip, createGzip, gzip, type InputType } from "node:zlib";
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { decodeSteps } from "../../namespace/messages/message-steps.ts";
import { inSlices } from "../../runtime/pace.ts";
import { SMALL_MESSAGE_BYTES, scanBinary } from "../binary-budget.ts";
import { type Frame, tooLarge } from "./frame.ts";

/** Supported message encodings, in the form of `grpc-accept-encoding`. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/** Bounds of an unpacked message. */
export interface UnpackOptions {
  readonly maxBytes: number;
  /** Account from which the bytes are taken before they are kept; the caller returns them. */
  readonly hold: ByteHold;
}

/**
 * Unpacks a message.
 *
 * @throws LanceError PayloadTooLarge, as soon as the result exceeds `maxBytes`; Throttling; Internal, for bytes that are not
 *   gzip.
 */
export function unpack(
  data: Uint8Array,
  { maxBytes, hold }: UnpackOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const gunzip = createGunzip();
    const pieces: Buffer[] = [];
    let size = 0;
    gunzip.on("data", (piece: Buffer) => {
      try {
        size += piece.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        hold.take(piece.length);
        pieces.push(piece);
      } catch (thrown) {
        gunzip.destroy();
        reject(thrown);
      }
    });
    gunzip.on("end", () => resolve(Buffer.concat(pieces, size)));
    gunzip.on("error", (cause) =>
      reject(new LanceError("Internal", "cannot decompress a message", { cause })),
    );
    gunzip.end(data);
  });
}

/** Packs a message. */
export function pack(data: InputType): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    gzip(data, { level: constants.Z_BEST_SPEED }, (error, result) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}

/** Packs a message in pieces, piece by piece. */
export function packPieces(pieces: Iterable<Uint8Array>): Promise<Uint8Array[]> {
  return Readable.from(pieces)
    .pipe(createGzip({ level: constants.Z_BEST_SPEED }))
    .toArray();
}

/** Whether `grpc-accept-encoding` contains gzip. */
export function acceptsGzip(header: string | undefined): boolean {
  return header?.split(",").some((name) => name.trim() === "gzip") ?? false;
}

/** How the messages of a request may be encoded. */
export interface MessageOptions {
  /** Whether messages with the compressed flag are gzip; otherwise they are an error. */
  readonly gzipIn: boolean;
  readonly maxMessageBytes: number;
  /** Bytes of the request that are kept. */
  readonly hold: ByteHold;
}

/**
 * Decodes a message; a long one in steps.
 *
 * @throws LanceError InvalidInput, for bytes that are not a message of this type, and for a message with too many
 *   fields. The promise rejects with the same errors.
 */
export function decode(description: DescMessage, data: Uint8Array): Message | Promise<Message> {
  if (data.byteLength > SMALL_MESSAGE_BYTES) return decodeLong(description, data);
  try {
    return fromBinary(description, data);
  } catch (error) {
    throw invalid(description, error);
  }
}

async function decodeLong(description: DescMessage, data: Uint8Array): Promise<Message> {
  await inSlices(scanBinary(description, data));
  try {
    return await inSlices(decodeSteps(description, data));
  } catch (error) {
    throw invalid(description, error);
  }
}

function invalid({ typeName }: DescMessage, cause: unknown): LanceError {
  return new LanceError("InvalidInput", `a message is not a valid ${typeName}`, { cause });
}

/**
 * Unpacks a message that has the compressed flag.
 *
 * @throws LanceError Internal, if no encoding was announced; and the errors of {@link unpack}.
 */
export async function plainData(frame: Frame, options: MessageOptions): Promise<Uint8Array> {
  if (!frame.compressed) return frame.data;
  if (!options.gzipIn) {
    throw new LanceError(
      "Internal",
      "a message has the compressed flag, and grpc-encoding names no encoding",
    );
  }
  return unpack(frame.data, { maxBytes: options.maxMessageBytes, hold: options.hold });
}

/** Returns the error for a body that ends inside a message. */
export function truncated(): LanceError {
  return new LanceError("Internal", "the request ends inside a message");
}
