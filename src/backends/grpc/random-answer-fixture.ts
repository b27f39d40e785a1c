// Answers of gRPC upstreams that a seed draws: good ones, and ones that clients have read in different ways.
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Random } from "../../../test/support/random.ts";
import { randomFrames } from "../../../test/support/random-frames.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";

/** Options of a server whose clients give up many answers: node's server would end their connection. */
export const MANY_RESETS = { streamResetBurst: 1_000_000, streamResetRate: 1_000_000 };

/** Largest message of an answer, in bytes. */
export const MAX_MESSAGE_BYTES = 1_000;

const described = (table: string, context: Record<string, string> = {}) =>
  Buffer.from(toBinary(DescribeTableResponseSchema, create(DescribeTableResponseSchema, { table, context })));
const MESSAGES = [
  described("t"),
  described("é".repeat(100)),
  described("t", { "header.x-a": "b", "header.cookie": "c=d", plain: "e" }),
  ...[MAX_MESSAGE_BYTES - 3, MAX_MESSAGE_BYTES - 2, 70_000].map((size) => described("t".repeat(size))),
  // Nothing, a broken tag, a length past the end, bytes that are not UTF-8, an unknown field, a field twice.
  ...["", "0f", "127f74", "1201ff", "120174fa3f0161", "120174120175"].map((hex) => Buffer.from(hex, "hex")),
];
const ENCODINGS = ["identity", "gzip", "deflate", "snappy", "gzip,identity", "GZIP", ""];
const TYPES = [
  ...["application/grpc+proto", "application/grpc+json", "application/grpc-web", "application/json", ""],
];
const STATUSES = [
  ...["1", "2", "3", "4", "5", "7", "8", "12", "13", "14", "16", "17", "-1", "99", "00", "x", "", "0.5"],
];
const TEXTS = [
  ...["gone", "%C3%A9", "%", "%zz", "%ff", "a%0Ab", "", "x".repeat(3_000), "No message received"],
  ...["Stream refused by server", "Response message parsing error", "Received RST_STREAM with code 2"],
];
const DETAILS = ["", "AA", "!", "CAUSBGdvbmU", "CAUSBGdvbmU=", "CAUSBGdvbmU,CAUSBGdvbmU", "/w"];
const METADATA: readonly OutgoingHttpHeaders[] = [
  ...[{ "x-a": "1" }, { "x-a": ["1", "2"] }, { "x-b-bin": "AAE" }, { "x-b-bin": "no base64" }],
  ...[{ "x-b-bin": "AAE,AAI" }, { "x-long": "l".repeat(4_000) }, { "retry-after": "1" }],
  ...[
    { "grpc-retry-pushback-ms": "1" },
    { "grpc-accept-encoding": "gzip" },
    { "set-cookie": ["a=b", "c=d"] },
  ],
];
const CODES = [
  ...["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "REFUSED_STREAM", "CANCEL"],
  ...["ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"],
] as const;
const HTTP_STATUSES = [204, 302, 400, 401, 403, 404, 429, 500, 502, 503, 504];

/** The answer of an upstream to a call. */
export interface RandomAnswer {
  readonly headers: OutgoingHttpHeaders;
  /** Messages, cut into pieces. Default: there is nothing behind the headers. */
  readonly pieces?: readonly Buffer[];
  readonly trailers?: OutgoingHttpHeaders | undefined;
  /** Code of the reset that ends the answer, and whether the reset replaces the headers, too. */
  readonly reset?: { readonly code: number; readonly atOnce: boolean } | undefined;
  readonly informs: boolean;
}

/** Draws an answer. */
export function randomAnswer(random: Random): RandomAnswer {
  const chance = (one: number) => random.below(one) === 0;
  const some = (from: readonly OutgoingHttpHeaders[]) => (chance(3) ? random.pick(from) : {});
  const status = () => ({
    "grpc-status": chance(3) ? random.pick(STATUSES) : "0",
    ...(chance(4) && { "grpc-message": random.pick(TEXTS) }),
    ...(chance(6) && { "grpc-status-details-bin": random.pick(DETAILS) }),
    ...(chance(20) && { "grpc-status": ["0", "5"] }),
    ...some(METADATA),
  });
  const encoding = chance(3) ? random.pick(ENCODINGS) : undefined;
  const headers = {
    ":status": chance(12) ? random.pick(HTTP_STATUSES) : 200,
    "content-type": chance(12) ? random.pick(TYPES) : "application/grpc",
    ...(encoding !== undefined && { "grpc-encoding": encoding }),
    ...some(METADATA),
    ...(chance(12) && status()),
  };
  const reset = chance(6)
    ? { code: constants[`NGHTTP2_${random.pick(CODES)}`], atOnce: chance(3) }
    : undefined;
  const informs = chance(15);
  if (chance(8)) return { headers: { ...headers, ...status() }, reset, informs };

  const pieces = randomFrames(random, MESSAGES, encoding);
  return { headers, pieces, trailers: chance(15) ? undefined : status(), reset, informs };
}

/** Answers a call. */
export function play(
  { headers, pieces, trailers, reset, informs }: RandomAnswer,
  stream: ServerHttp2Stream,
): void {
  stream.on("error", () => {});
  if (reset?.atOnce) {
    stream.close(reset.code);
    return;
  }
  if (informs) stream.additionalHeaders({ ":status": 103, "x-early": "1" });
  if (pieces === undefined) {
    stream.respond(headers, { endStream: reset === undefined });
  } else {
    if (trailers !== undefined) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.respond(headers, { waitForTrailers: trailers !== undefined });
    for (const piece of pieces) stream.write(piece);
    if (reset === undefined) stream.end();
  }
  // The reset would overtake the pieces.
  if (reset !== undefined) setImmediate(() => stream.close(reset.code));
}
