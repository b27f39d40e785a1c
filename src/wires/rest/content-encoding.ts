import type { Readable, Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Largest window of a body in zstd, as a power of two: 8 MiB, as RFC 9659 bounds it. The decoder holds a window beside the bytes that count
 * for the budgets, and would otherwise take 128 MiB for a body of a few kilobytes.
 */
const ZSTD_WINDOW_LOG = 23;

/** A decoder, and its memory. */
interface Decoder {
  readonly create: () => Transform;
  /** Memory before there is an output, in bytes as measured. */
  readonly bytes: number;
  /** Largest window, of which it keeps the last output, in bytes; 0 where the memory above has the window. */
  readonly windowBytes: number;
}

const KIB = 1024;

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", { create: createGunzip, bytes: 80 * KIB, windowBytes: 0 }],
  ["x-gzip", { create: createGunzip, bytes: 80 * KIB, windowBytes: 0 }],
  ["deflate", { create: createInflate, bytes: 80 * KIB, windowBytes: 0 }],
  ["br", { create: createBrotliDecompress, bytes: 64 * KIB, windowBytes: 16 * KIB * KIB }],
  [
    "zstd",
    {
      create: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
      bytes: 224 * KIB,
      windowBytes: 2 ** ZSTD_WINDOW_LOG,
    },
  ],
]);

const ignore = () => {};

/** A body without its content encoding. */
export interface DecodedBody {
  readonly stream: Readable;
  /** Most bytes of the output that the decoder keeps for itself. */
  readonly windowBytes: number;
  /** Returns the error for a failure of `stream`. */
  failure(cause: unknown): LanceError;
}

/**
 * Returns the body of a request without its content encoding.
 *
 * @param hold account from which the memory of the decoder is taken; the caller returns it
 * @throws LanceError UnsupportedMediaType for an unknown encoding, Throttling
 */
export function decodeBody(exchange: Exchange, hold: ByteHold): DecodedBody {
  const { request } = exchange;
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") {
    return {
      stream: request,
      windowBytes: 0,
      failure: (cause) => new LanceError("Cancelled", "the client disconnected", { cause }),
    };
  }
  const found = DECODERS.get(encoding);
  if (found === undefined) {
    const accepted = [...DECODERS.keys()].filter((name) => !name.startsWith("x-")).join(", ");
    throw new LanceError("UnsupportedMediaType", `content encoding ${encoding} is not one of ${accepted}`, {
      headers: { "accept-encoding": accepted },
    });
  }
  hold.take(found.bytes);
  const decoder = found.create();
  // Its reader may have stopped, and an error without a listener would end the process.
  decoder.on("error", ignore);
  // stream.pipeline would destroy the request, and with it the connection, when decoding fails.
  request.pipe(decoder);
  request.once("close", () => {
    if (!decoder.writableEnded) decoder.destroy();
  });
  exchange.onDone = () => {
    request.unpipe(decoder);
    decoder.destroy();
  };
  return {
    stream: decoder,
    windowBytes: found.windowBytes,
    failure: (cause) => new LanceError("InvalidInput", `request body is not valid ${encoding}`, { cause }),
  };
}
