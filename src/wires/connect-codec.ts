import type { IncomingMessage } from "node:http";
import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { LanceError } from "../namespace/errors.ts";
import { inSlices } from "../runtime/pace.ts";
import { SMALL_JSON_BYTES, scanJson } from "../transcode/json-scan.ts";
import { scanBinary } from "./binary-budget.ts";
import type { MessageCheck } from "./connect-body.ts";
import { tooLarge } from "./grpc/frame.ts";
import { FREE_BYTES } from "./limits.ts";
import type { LoopPace } from "./loop-pace.ts";

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

/** Returns gzip whose messages are checked after they are unpacked. */
export function checkedGzip(check: MessageCheck, errorOf: (error: LanceError) => ConnectError): Compression {
  return {
    ...compressionGzip,
    async decompress(bytes, readMaxBytes) {
      try {
        const plain = await compressionGzip.decompress(bytes, readMaxBytes);
        await check(plain);
        return plain;
      } catch (thrown) {
        if (thrown instanceof LanceError) throw errorOf(thrown);
        const isTooLarge = thrown instanceof ConnectError && thrown.code === Code.ResourceExhausted;
        throw isTooLarge ? errorOf(tooLarge(readMaxBytes)) : thrown;
      }
    },
  };
}
