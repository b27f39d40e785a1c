import { Readable } from "node:stream";
import { constants, createGunzip, createGzip, gzip, type InputType } from "node:zlib";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import { tooLarge } from "./frame.ts";

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
