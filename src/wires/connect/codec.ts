import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import type { LoopPace } from "../../runtime/loop-pace.ts";
import { inSlices } from "../../runtime/pace.ts";
import { SMALL_JSON_BYTES, scanJson } from "../../transcode/json/scan.ts";
import { scanBinary } from "../binary-budget.ts";
import { unpack } from "../grpc/gzip.ts";
import { FREE_BYTES } from "../limits.ts";
import type { MessageCheck } from "./body.ts";

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
    // The library would replace the faulty bytes, and store another text than the client's.
    if (codec === "json" && !isUtf8(bytes))
      throw new LanceError("InvalidInput", "a message in JSON is not valid UTF-8");
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

/** How the gzip of a request unpacks its messages. */
export interface CheckedGzipOptions {
  /** Bytes of the request that are kept. */
  readonly hold: ByteHold;
  /** Check of each message after it is unpacked. */
  readonly check: MessageCheck;
  /** Converts an error to the library's form. */
  readonly errorOf: (error: LanceError) => ConnectError;
}

/** Returns gzip for the messages of a single request, whose unpacked bytes count. */
export function checkedGzip({ hold, check, errorOf }: CheckedGzipOptions): Compression {
  return {
    ...compressionGzip,
    async decompress(bytes, readMaxBytes) {
      if (bytes.length === 0) return new Uint8Array(0);
      try {
        const plain = await unpack(bytes, { maxBytes: readMaxBytes, hold });
        await check(plain);
        return plain;
      } catch (thrown) {
        if (!(thrown instanceof LanceError)) throw thrown;
        // Bytes that are not gzip are a fault of the server to gRPC alone.
        const isBroken = thrown.is("Internal");
        throw errorOf(isBroken ? new LanceError("InvalidInput", thrown.message, { cause: thrown }) : thrown);
      }
    },
  };
}
