import type { Readable, Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { LanceError } from "../../namespace/errors.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Largest window of a body in zstd, as a power of two: 8 MiB, as RFC 9659 bounds it. The decoder holds a window beside the bytes that count
 * for the budgets, and would otherwise take 128 MiB for a body of a few kilobytes.
 */
const ZSTD_WINDOW_LOG = 23;

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } })],
]);

const ignore = () => {};

/** A body without its content encoding. */
export interface DecodedBody {
  readonly stream: Readable;
  /** Returns the error for a failure of `stream`. */
  failure(cause: unknown): LanceError;
}

/**
 * Returns the body of a request without its content encoding.
 *
 * @throws LanceError UnsupportedMediaType for an unknown encoding.
 */
export function decodeBody(exchange: Exchange): DecodedBody {
  const { request } = exchange;
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") {
    return {
      stream: request,
      failure: (cause) => new LanceError("Cancelled", "the client has gone", { cause }),
    };
  }
  const create = DECODERS.get(encoding);
  if (create === undefined) {
    const accepted = [...DECODERS.keys()].filter((name) => !name.startsWith("x-")).join(", ");
    throw new LanceError("UnsupportedMediaType", `content encoding ${encoding} is not one of ${accepted}`, {
      headers: { "accept-encoding": accepted },
    });
  }
  const decoder = create();
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
    failure: (cause) => new LanceError("InvalidInput", `request body is not valid ${encoding}`, { cause }),
  };
}
