// Requests of gRPC that a seed draws: good ones, and ones that servers have answered in different ways.
import type { OutgoingHttpHeaders } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Random } from "../../../test/support/random.ts";
import { messagesIn, randomFrames } from "../../../test/support/random-frames.ts";
import { DescribeTableRequestSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { METHODS, pathOfMethod } from "./fixture.ts";

/** Largest message of a request, in bytes. */
export const MAX_MESSAGE_BYTES = 1_000;

/** Path of the method. */
export const DESCRIBE = pathOfMethod(METHODS.describeTable);
const named = (...id: string[]) =>
  Buffer.from(toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id })));
const MESSAGES = [
  ...[named("t"), named("t"), named("a", "é"), named(), named("gone"), named("broken")],
  ...[MAX_MESSAGE_BYTES - 3, MAX_MESSAGE_BYTES - 2, 70_000].map((size) => named("t".repeat(size))),
  ...["0f", "0a7f74", "fa3f0161"].map((hex) => Buffer.from(hex, "hex")),
];
const PATHS = [
  ...[
    "/lance.namespace.v1.LanceNamespaceService/Nothing",
    "/other.Service/DescribeTable",
    `${DESCRIBE}/`,
    "/",
  ],
  ...[DESCRIBE.toLowerCase(), `${DESCRIBE}?a=b`, "//", `/${DESCRIBE}`, "*"],
];
const TYPES = [
  "application/grpc+proto",
  "application/grpc;x=y",
  "application/json",
  "text/plain",
  "application/grp",
  "",
];
const TIMEOUTS = [
  "1H",
  "60S",
  "99999999m",
  "100000000u",
  "5",
  "S",
  "123456789S",
  "-1S",
  "1.5S",
  " 1S",
  "1s",
  "1h",
  "",
];
const ENCODINGS = ["identity", "gzip", "snappy", "GZIP", "br"];
const HEADERS: readonly OutgoingHttpHeaders[] = [
  ...[
    { "x-a": "1" },
    { "x-a": ["1", "2"] },
    { "x-a-bin": "AAE" },
    { "x-a-bin": "no base64" },
    { "x-a-bin": "AAE,AA" },
  ],
  ...[
    { te: undefined },
    { "grpc-accept-encoding": "gzip" },
    { "grpc-accept-encoding": "br,,;" },
    { authorization: "Bearer" },
  ],
  ...[{ "user-agent": "" }, { "x-long": "l".repeat(5_000) }, { cookie: "a=b" }, { "grpc-x": "1" }],
  ...[
    { "x-request-timeout-ms": "soon" },
    { "grpc-previous-rpc-attempts": "1" },
    { "accept-encoding": "gzip" },
  ],
];

/** A request: its headers, its body in pieces, and how it ends. */
export interface RandomRequest {
  readonly headers: OutgoingHttpHeaders;
  readonly pieces: readonly Buffer[];
  readonly end: "data" | "trailers" | "headers" | "reset";
}

/** Draws a request. */
export function randomRequest(random: Random): RandomRequest {
  const chance = (one: number) => random.below(one) === 0;
  const encoding = chance(4) ? random.pick(ENCODINGS) : undefined;
  return {
    headers: {
      ":method": chance(20) ? random.pick(["GET", "PUT", "OPTIONS"]) : "POST",
      ":path": chance(8) ? random.pick(PATHS) : DESCRIBE,
      "content-type": chance(8) ? random.pick(TYPES) : "application/grpc",
      te: "trailers",
      ...(chance(4) && { "grpc-timeout": random.pick(TIMEOUTS) }),
      ...(encoding !== undefined && { "grpc-encoding": encoding }),
      ...(chance(2) && random.pick(HEADERS)),
      ...(chance(4) && random.pick(HEADERS)),
    },
    pieces: randomFrames(random, MESSAGES, encoding),
    end: random.pick(["data", "data", "data", "data", "trailers", "headers", "reset"]),
  };
}

/** The answer to a request, without what every server words in its own way. */
export interface Outcome {
  readonly http: unknown;
  readonly status: unknown;
  readonly body: string;
}

/** How the answer to a request may differ from that of the library's server. */
export const DIFFERENCES: Readonly<
  Record<string, (request: RandomRequest, own: Outcome, library: Outcome) => boolean>
> = {
  "requests of gRPC are POST": ({ headers }, own) => headers[":method"] !== "POST" && own.http === 405,
  "an unknown encoding is refused even if no message is packed": ({ headers }, own) =>
    !["identity", "gzip"].includes(String(headers["grpc-encoding"] ?? "gzip")) && own.status === "12",
  "a malformed timeout is the client's mistake": ({ headers }, own) =>
    !/^ *\d{1,8}[HMSmun]$/.test(String(headers["grpc-timeout"] ?? "1S")) && own.status === "3",
  "a malformed message is the client's mistake": (_, own, library) =>
    own.status === "3" && library.status === "13",
  "a flag is 0, or 1 for a message in the announced encoding": ({ headers, pieces }, own) =>
    Number(Buffer.concat(pieces)[0]) > (headers["grpc-encoding"] === "gzip" ? 1 : 0) && own.status === "13",
  "of several messages, another one may be refused first": ({ pieces }, own, library) =>
    messagesIn(pieces).messages > 1 && own.status !== "0" && library.status !== "0",
  "a body does not end inside a message": ({ pieces }, own) =>
    messagesIn(pieces).isCut && own.status === "13",
};
