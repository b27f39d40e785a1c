import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { DescMessage, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { encodeJsonSteps, encodeSteps } from "../namespace/message-steps.ts";
import { inSlices } from "../namespace/pace.ts";
import type { Codec } from "./connect-codec.ts";
import { acceptsGzip } from "./grpc/gzip.ts";
import { bytesIn } from "./pieces.ts";

/** Encodes a long answer of a unary call in steps, because the library encodes it at once. */
export function encodeLong(
  type: DescMessage,
  answer: Message,
  codec: Codec,
  options?: Partial<JsonWriteOptions>,
): Promise<Uint8Array[]> {
  return inSlices(codec === "json" ? encodeJsonSteps(type, answer, options) : encodeSteps(type, answer));
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
