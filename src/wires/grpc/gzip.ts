import { Readable } from "node:stream";
import { constants, createGzip, gunzip, gzip, type InputType } from "node:zlib";
import { LanceError } from "../../namespace/errors.ts";
import { tooLarge } from "./frame.ts";

/** Supported message encodings, in the form of `grpc-accept-encoding`. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/**
 * Unpacks a message.
 *
 * @throws LanceError PayloadTooLarge, as soon as the result exceeds `maxBytes`; Internal, for bytes that are not
 *   gzip.
 */
export function unpack(data: InputType, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    gunzip(data, { maxOutputLength: maxBytes }, (error, result) => {
      if (error === null) resolve(result);
      else if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") reject(tooLarge(maxBytes));
      else reject(new LanceError("Internal", "a compressed message cannot be unpacked", { cause: error }));
    });
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
