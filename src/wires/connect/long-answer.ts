import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { DescMessage, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { encodeJsonSteps, encodeSteps } from "../../namespace/messages/message-steps.ts";
import { bytesIn } from "../../runtime/byte-memory.ts";
import { inSlices } from "../../runtime/pace.ts";
import { encodeFramePieces } from "../grpc/frame.ts";
import { acceptsGzip, packPieces } from "../grpc/message.ts";
import type { Codec } from "./codec.ts";

/** How a long answer is encoded. */
export interface EncodeOptions {
  readonly codec: Codec;
  readonly json: Partial<JsonWriteOptions>;
  /** Ends the work, which throws its reason. */
  readonly signal: AbortSignal;
}

/** Encodes a long answer of a unary call in steps, because the library encodes it at once. */
export function encodeLong(
  type: DescMessage,
  answer: Message,
  { codec, json, signal }: EncodeOptions,
): Promise<Uint8Array[]> {
  const steps = codec === "json" ? encodeJsonSteps(type, answer, json) : encodeSteps(type, answer);
  return inSlices(steps, () => signal.throwIfAborted());
}

/**
 * Returns the answer of a unary call of Connect with the bytes of its message, in place of the empty message that the library has encoded, and
 * too short to be compressed. It is compressed as the library would do it, but in pieces.
 */
export function withMessage(
  empty: UniversalServerResponse,
  pieces: readonly Uint8Array[],
  { headers }: IncomingMessage,
): UniversalServerResponse {
  const header = new Headers(empty.header);
  const body = Readable.from(pieces);
  if (!acceptsGzip(headers["accept-encoding"] as string | undefined)) {
    header.set("content-length", String(bytesIn(pieces)));
    return { ...empty, header, body };
  }
  header.delete("content-length");
  header.set("content-encoding", "gzip");
  return { ...empty, header, body: body.pipe(createGzip()) };
}

/** Flag of the envelope with the trailers of gRPC-Web. */
const TRAILERS = 0x80;

/** Returns the answer of a unary call of gRPC-Web with the bytes of its message, in place of the empty message that the library has encoded. */
export async function withFrame(
  empty: UniversalServerResponse,
  pieces: readonly Uint8Array[],
): Promise<UniversalServerResponse> {
  const isPacked = empty.header?.get("grpc-encoding") === "gzip";
  const frame = encodeFramePieces(isPacked ? await packPieces(pieces) : pieces, isPacked);
  return { ...empty, body: framed(empty.body as AsyncIterable<Uint8Array>, frame) };
}

/** Yields a message in place of the one in a body, each of whose pieces is an envelope; a failed call has only trailers. */
async function* framed(
  body: AsyncIterable<Uint8Array>,
  frame: readonly Uint8Array[],
): AsyncGenerator<Uint8Array> {
  for await (const envelope of body) {
    if (envelope[0] === TRAILERS) yield envelope;
    else yield* frame;
  }
}
