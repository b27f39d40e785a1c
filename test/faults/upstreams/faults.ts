import { setTimeout as sleep } from "node:timers/promises";
import type { ResiliencePolicy } from "../../../src/backends/resilience/options.ts";
import type { Operation } from "./answers.ts";
import {
  answerGrpc,
  beginGrpc,
  type ConnectionFault,
  type GrpcFault,
  halfAnswerGrpc,
  lieGrpc,
  NGHTTP2_REFUSED_STREAM,
  refuseGrpc,
  trickleGrpc,
} from "./grpc-upstream.ts";
import {
  answerRest,
  halfAnswerRest,
  headOf,
  type RestFault,
  refuseRest,
  trickleRest,
} from "./rest-upstream.ts";

/** The protocols towards an upstream, and of a client. */
export type Wire = "REST" | "gRPC";
export const WIRES: readonly Wire[] = ["REST", "gRPC"];

/** How long the gateway waits for a head, and for the next piece of a body, in milliseconds: of a slow upstream. */
export const PATIENCE_MS = { slow: 4_000, other: 60_000 } as const;
/** A pause that the gateway bears; one that it does not, where the timers of its HTTP client are coarse. */
const SHORT_MS = 200;
/** A pause before each tenth of a body, which takes longer as a whole than the gateway waits for a head. */
const TRICKLE_MS = 500;
const LONG_MS = 10_000;
/** A body that is cut off at once may be cut off before what was sent of it is read. */
const ON_ITS_WAY_MS = 20;
const AWAY_MS = 50;

/** What a client sees, and how many calls the upstream gets, such as `ok, 2`; by client where they differ. */
export type Expected = string | Readonly<Record<Wire, string>>;
type Expectations = Readonly<Record<Operation, Expected>>;

/** A way in which an upstream is broken, and what has to come of it. */
export interface Fault {
  readonly name: string;
  /** Whether it is like that for one call of each operation, and well afterwards. Default: for good. */
  readonly once?: boolean;
  /** Whether it takes no connections at all. */
  readonly away?: boolean;
  /** Whether its slowness is what is wrong with it, so that the gateway's patience is short. Default: false. */
  readonly slow?: boolean;
  /** How the gateway deals with it, where that is not as usual. */
  readonly policy?: ResiliencePolicy;
  readonly rest?: RestFault;
  readonly grpc?: GrpcFault;
  /** What the gRPC upstream does with connections, in place of HTTP/2. */
  readonly grpcConnection?: ConnectionFault;
  readonly expected: Expectations | Readonly<Record<Wire, Expectations>>;
}

const all = (expected: string): Expectations => ({
  describe: expected,
  query: expected,
  insert: expected,
  create: expected,
});
/** Reads may be made again, and others may not. */
const repeated = (reads: string, others: string): Expectations => ({
  describe: reads,
  query: reads,
  insert: others,
  create: others,
});
/** Bodies that have begun are broken off: by REST there is no other way to tell. */
const brokenOff = (expected: string): Expectations => ({
  ...all(expected),
  query: { REST: "cut off, 1", gRPC: expected },
});

/** All faults. */
export const FAULTS: readonly Fault[] = [
  {
    name: "head late, within the limit",
    slow: true,
    rest: async (exchange) => {
      await sleep(SHORT_MS);
      answerRest(exchange);
    },
    grpc: async (exchange) => {
      await sleep(SHORT_MS);
      answerGrpc(exchange);
    },
    expected: all("ok, 1"),
  },
  {
    name: "head too late",
    slow: true,
    rest: async (exchange) => {
      await sleep(LONG_MS);
      answerRest(exchange);
    },
    grpc: async (exchange) => {
      await sleep(LONG_MS);
      if (!exchange.stream.destroyed) answerGrpc(exchange);
    },
    expected: all("DeadlineExceeded, 1"),
  },
  {
    name: "body trickles",
    slow: true,
    rest: (exchange) => trickleRest(exchange, TRICKLE_MS),
    grpc: (exchange) => trickleGrpc(exchange, TRICKLE_MS),
    // A message of gRPC comes whole or not at all.
    expected: { REST: all("ok, 1"), gRPC: { ...all("DeadlineExceeded, 1"), query: "ok, 1" } },
  },
  {
    name: "body stops",
    slow: true,
    rest: halfAnswerRest,
    grpc: halfAnswerGrpc,
    expected: brokenOff("DeadlineExceeded, 1"),
  },
  {
    name: "reset before the head, once",
    once: true,
    rest: ({ socket }) => socket.resetAndDestroy(),
    grpc: ({ socket }) => socket.resetAndDestroy(),
    expected: repeated("ok, 2", "ServiceUnavailable, 1"),
  },
  {
    name: "reset before the head",
    rest: ({ socket }) => socket.resetAndDestroy(),
    grpc: ({ socket }) => socket.resetAndDestroy(),
    expected: repeated("ServiceUnavailable, 3", "ServiceUnavailable, 1"),
  },
  {
    name: "reset in the body",
    rest: async (exchange) => {
      halfAnswerRest(exchange);
      await sleep(ON_ITS_WAY_MS);
      exchange.socket.resetAndDestroy();
    },
    grpc: async (exchange) => {
      halfAnswerGrpc(exchange);
      await sleep(ON_ITS_WAY_MS);
      exchange.socket.resetAndDestroy();
    },
    expected: brokenOff("ServiceUnavailable, 1"),
  },
  {
    name: "half-closed before the head",
    rest: ({ socket }) => socket.end(),
    grpc: ({ stream }) => stream.respond({ ":status": 200 }, { endStream: true }),
    expected: repeated("ServiceUnavailable, 3", "ServiceUnavailable, 1"),
  },
  {
    name: "half a body, then half-closed",
    rest: (exchange) => {
      halfAnswerRest(exchange);
      exchange.socket.end();
    },
    grpc: (exchange) => {
      halfAnswerGrpc(exchange);
      exchange.stream.end();
    },
    expected: brokenOff("ServiceUnavailable, 1"),
  },
  {
    name: "connection half-closed before the head",
    grpc: ({ socket }) => socket.end(),
    expected: repeated("ServiceUnavailable, 3", "ServiceUnavailable, 1"),
  },
  {
    name: "last message cut short, with the status of a whole answer",
    grpc: (exchange) => {
      beginGrpc(exchange);
      const bytes = Buffer.concat(exchange.frames);
      exchange.stream.end(bytes.subarray(0, bytes.length - 10));
    },
    // The library drops the message without a word.
    expected: { ...all("ServiceUnavailable, 1"), query: { REST: "cut off, 1", gRPC: "incomplete, 1" } },
  },
  {
    name: "503 with Retry-After, once",
    once: true,
    rest: (exchange) => refuseRest(exchange, "503 Service Unavailable", 0),
    grpc: (exchange) => refuseGrpc(exchange, 14, 0),
    expected: repeated("ok, 2", "ServiceUnavailable, 1"),
  },
  {
    name: "503 with Retry-After",
    rest: (exchange) => refuseRest(exchange, "503 Service Unavailable", 0),
    grpc: (exchange) => refuseGrpc(exchange, 14, 0),
    expected: repeated("ServiceUnavailable, 3", "ServiceUnavailable, 1"),
  },
  {
    name: "503 with a Retry-After of an hour",
    rest: (exchange) => refuseRest(exchange, "503 Service Unavailable", 3_600),
    grpc: (exchange) => refuseGrpc(exchange, 14, 3_600),
    expected: all("ServiceUnavailable, 1"),
  },
  {
    name: "429 with Retry-After, once",
    once: true,
    rest: (exchange) => refuseRest(exchange, "429 Too Many Requests", 0),
    grpc: (exchange) => refuseGrpc(exchange, 8, 0),
    expected: repeated("ok, 2", "Throttling, 1"),
  },
  {
    name: "502 of a proxy, once",
    once: true,
    rest: (exchange) => refuseRest(exchange, "502 Bad Gateway", 0),
    grpc: ({ stream }) => {
      stream.respond({ ":status": 502, "content-type": "text/html" });
      stream.end("<html><h1>Bad Gateway</h1></html>");
    },
    expected: repeated("ok, 2", "ServiceUnavailable, 1"),
  },
  {
    name: "500",
    rest: (exchange) => refuseRest(exchange, "500 Internal Server Error", 0),
    grpc: (exchange) => refuseGrpc(exchange, 13, 0),
    expected: all("Internal, 1"),
  },
  {
    name: "length too long",
    rest: (exchange) => {
      const { socket, body } = exchange;
      socket.end(Buffer.concat([Buffer.from(headOf(exchange, body.length + 10)), body]));
    },
    grpc: (exchange) => lieGrpc(exchange, 10),
    expected: {
      // Whoever reads Arrow knows its end without a length.
      REST: { ...all("ServiceUnavailable, 1"), query: { REST: "ok, 1", gRPC: "ServiceUnavailable, 1" } },
      gRPC: all("ServiceUnavailable, 1"),
    },
  },
  {
    name: "length too short",
    rest: (exchange) => {
      const { socket, body } = exchange;
      socket.write(Buffer.concat([Buffer.from(headOf(exchange, body.length - 10)), body]));
    },
    grpc: (exchange) => lieGrpc(exchange, -10),
    expected: {
      REST: { ...all("ServiceUnavailable, 1"), query: { REST: "cut off, 1", gRPC: "incomplete, 1" } },
      gRPC: all("ServiceUnavailable, 1"),
    },
  },
  {
    name: "garbage instead of a head",
    rest: ({ socket }) => socket.write("SSH-2.0-garbage\r\n"),
    grpc: answerGrpc,
    grpcConnection: (socket) => socket.write("SSH-2.0-garbage\r\n"),
    expected: { REST: all("ServiceUnavailable, 1"), gRPC: all("ServiceUnavailable, 0") },
  },
  {
    name: "garbage in the body",
    rest: (exchange) => {
      answerRest({ ...exchange, body: Buffer.from(exchange.body).fill("garbage ") });
    },
    grpc: (exchange) => {
      beginGrpc(exchange);
      const [first] = exchange.frames as [Buffer];
      exchange.stream.end(Buffer.concat([first.subarray(0, 5), Buffer.alloc(first.length - 5, "garbage ")]));
    },
    expected: {
      // What is Arrow is not looked into where the client takes it as it comes.
      REST: {
        ...all("ServiceUnavailable, 1"),
        query: { REST: "ServiceUnavailable, 1", gRPC: "incomplete, 1" },
      },
      gRPC: all("ServiceUnavailable, 1"),
    },
  },
  {
    name: "stream refused, once",
    once: true,
    grpc: ({ stream }) => stream.close(NGHTTP2_REFUSED_STREAM),
    expected: all("ok, 2"),
  },
  {
    name: "stream refused",
    grpc: ({ stream }) => stream.close(NGHTTP2_REFUSED_STREAM),
    // Each attempt is two calls: the library makes such a call once more by itself.
    expected: { ...all("ServiceUnavailable, 6"), insert: "ServiceUnavailable, 2" },
  },
  {
    name: "restart during the call",
    once: true,
    policy: { retries: 8, backoffMs: 200, maxBackoffMs: 200 },
    rest: ({ upstream }) => upstream.restart(AWAY_MS),
    grpc: ({ upstream }) => upstream.restart(AWAY_MS),
    expected: repeated("ok, 2", "ServiceUnavailable, 1"),
  },
  { name: "away", away: true, rest: answerRest, grpc: answerGrpc, expected: all("ServiceUnavailable, 0") },
];
