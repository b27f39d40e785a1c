import type { IncomingMessage } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { LanceError } from "../../namespace/errors.ts";

/** Begins the media types of gRPC-Web's text mode, whose bodies are those of the binary mode in base64. */
const TEXT_TYPE = /^\s*application\/grpc-web-text\b/i;

/** Bytes that are encoded at once; a multiple of three, so that only the end of a piece is padded. */
const ENCODED_BYTES = 3 * 128 * 1024;

/** A part of a body up to its padding, and a mark of where the next one begins. */
const PART = /^[A-Za-z0-9+/]*={0,2}$/;
const AFTER_PADDING = /(?<==)(?!=)/;

/** Whether a request is in text mode. */
export function isTextMode({ headers }: IncomingMessage): boolean {
  return TEXT_TYPE.test(headers["content-type"] ?? "");
}

/** Returns the media type of the binary mode for one of the text mode. */
export function binaryType(contentType: string): string {
  return contentType.replace(TEXT_TYPE, "application/grpc-web");
}

/**
 * Yields the bytes of a body in base64. The body may be padded wherever its sender has flushed it.
 *
 * @throws LanceError InvalidInput, converted by `errorOf`, for a body that is not base64.
 */
export async function* decodeText(
  pieces: AsyncIterable<Uint8Array>,
  errorOf: (error: LanceError) => Error,
): AsyncGenerator<Uint8Array> {
  const broken = () => errorOf(new LanceError("InvalidInput", "the request body is not valid base64"));
  let rest = "";
  for await (const { buffer, byteOffset, byteLength } of pieces) {
    const text = rest + Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
    const whole = text.length & ~3;
    rest = text.slice(whole);
    const parts = text.slice(0, whole).split(AFTER_PADDING);
    if (!parts.every((part) => part.length % 4 === 0 && PART.test(part))) throw broken();
    if (whole > 0) yield Buffer.concat(parts.map((part) => Buffer.from(part, "base64")));
  }
  if (rest !== "") throw broken();
}

/** Returns an answer of the binary mode in text mode. Each piece of its body is padded, so that clients can read it at once. */
export function inTextMode(answer: UniversalServerResponse): UniversalServerResponse {
  const header = new Headers(answer.header);
  const type = header.get("content-type");
  if (type !== null) header.set("content-type", type.replace(/grpc-web\b/i, "grpc-web-text"));
  header.delete("content-length");
  return { ...answer, header, ...(answer.body && { body: encodeText(answer.body) }) };
}

async function* encodeText(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const { buffer, byteOffset, byteLength } of pieces) {
    for (let at = 0; at < byteLength; at += ENCODED_BYTES) {
      const bytes = Buffer.from(buffer, byteOffset + at, Math.min(ENCODED_BYTES, byteLength - at));
      yield Buffer.from(bytes.toString("base64"), "latin1");
    }
  }
}
