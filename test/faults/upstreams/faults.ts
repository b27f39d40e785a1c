import { setTimeout as sleep } from "node:timers/promises";
import type { ResiliencePolicy } from "../../../src/backends/resilience/resilience.ts";
import type { Operation } from "./answers.ts";
import {
  answerGrpc,
  beginGrpc,
  type ConnectionFault,
  type GrpcFault,
  halfAnswerGrpc,
  lieGrpc,
  NGHTTP2_ENHANCE_YOUR_CALM,
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

/** The protocols of upstreams and of clients. */
export type Wire = "REST" | "gRPC";
export const WIRES: readonly Wire[] = ["REST", "gRPC"];

/**
 * The gateway's time limits for a head and for the next piece of a body, in milliseconds: `slow` for upstreams whose
 * fault is slowness.
 */
export const PATIENCE_MS = { slow: 4_000, other: 60_000 } as const;
/** Duration of a pause of the upstream that the gateway tolerates, in milliseconds; the timers of the gateway's HTTP client are coarse. */
const SHORT_MS = 200;
/**
 * Pause before each tenth of a body, in milliseconds; the whole body takes longer than the gateway waits for a head.
 */
const TRICKLE_MS = 500;
/** Duration of a pause of the upstream that the gateway does not tolerate, in milliseconds. */
const LONG_MS = 10_000;
/**
 * Delay before a body is cut off, in milliseconds: a reset discards bytes that the gateway has not read, and the upstream
 * cannot see what it has read.
 */
const ON_ITS_WAY_MS = 20;
/** Duration of a restart, in milliseconds. */
const AWAY_MS = 50;

/**
 * The outcome for a client and the number of calls that the upstream gets, such as `ok, 2`; by client where they
 * differ.
 */
export type Expected = string | Readonly<Record<Wire, string>>;
type Expectations = Readonly<Record<Operation, Expected>>;

/** A fault of an upstream, and its expected outcome. */
export interface Fault {
  readonly name: string;
  /** Whether only one call of each operation meets the fault. Default: all calls do. */
  readonly once?: boolean;
  /** Whether the upstream refuses connections. */
  readonly away?: boolean;
  /** Whether slowness is the fault, so that the gateway's time limits are short. Default: false. */
  readonly slow?: boolean;
  /** The gateway's policy, where it is not the usual one. */
  readonly policy?: ResiliencePolicy;
  readonly rest?: RestFault;
  readonly grpc?: GrpcFault;
  /** The gRPC upstream's treatment of connections, in place of HTTP/2. */
  readonly grpcConnection?: ConnectionFault;
  readonly expected: Expectations | Readonly<Record<Wire, Expectations>>;
}

const all = (expected: string): Expectations => ({
  describe: expected,
  query: expected,
  insert: expected,
  create: expected,
});
/** Expects one outcome of reads, which may be repeated, and another one of changes, which are not. */
const repeated = (reads: string, others: string): Expectations => ({
  describe: reads,
  query: reads,
  insert: others,
  create: others,
});
/** The outcome of a change whose answer is lost. */
const LOST = "OutcomeUnknown, 1";
/** Expects that started bodies are cut off: REST has no other way to report a late failure. */
const brokenOff = (expected: string, changes = expected): Expectations => ({
  ...repeated(expected, changes),
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
    // A message of gRPC arrives as a whole or not at all.
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
    expected: repeated("ok, 2", LOST),
  },
  {
    name: "reset before the head",
    rest: ({ socket }) => socket.resetAndDestroy(),
    grpc: ({ socket }) => socket.resetAndDestroy(),
    expected: repeated("ServiceUnavailable, 3", LOST),
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
    expected: brokenOff("ServiceUnavailable, 1", LOST),
  },
  {
    name: "half-closed before the head",
    rest: ({ socket }) => socket.end(),
    grpc: ({ stream }) => stream.respond({ ":status": 200 }, { endStream: true }),
    expected: repeated("ServiceUnavailable, 3", LOST),
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
    expected: brokenOff("ServiceUnavailable, 1", LOST),
  },
  {
    name: "connection half-closed before the head",
    grpc: ({ socket }) => socket.end(),
    expected: repeated("ServiceUnavailable, 3", LOST),
  },
  {
    name: "last message cut short, with the status of a whole answer",
    grpc: (exchange) => {
      beginGrpc(exchange);
      const bytes = Buffer.concat(exchange.frames);
      exchange.stream.end(bytes.subarray(0, bytes.length - 10));
    },
    // The library drops the message silently.
    expected: {
      ...repeated("ServiceUnavailable, 1", LOST),
      query: { REST: "cut off, 1", gRPC: "incomplete, 1" },
    },
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
    expected: repeated("ok, 2", LOST),
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
      // A stream of Arrow marks its end, but the upstream may still fail after it.
      REST: {
        ...repeated("ServiceUnavailable, 1", LOST),
        query: { REST: "cut off, 1", gRPC: "ServiceUnavailable, 1" },
      },
      gRPC: repeated("ServiceUnavailable, 1", LOST),
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
      REST: {
        ...repeated("ServiceUnavailable, 1", LOST),
        query: { REST: "cut off, 1", gRPC: "incomplete, 1" },
      },
      gRPC: repeated("ServiceUnavailable, 1", LOST),
    },
  },
  {
    name: "garbage instead of a head",
    rest: ({ socket }) => socket.write("SSH-2.0-garbage\r\n"),
    grpc: answerGrpc,
    grpcConnection: (socket) => socket.write("SSH-2.0-garbage\r\n"),
    expected: { REST: repeated("ServiceUnavailable, 1", LOST), gRPC: all("ServiceUnavailable, 0") },
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
      // The gateway does not inspect Arrow that the client takes as it comes.
      REST: {
        ...repeated("ServiceUnavailable, 1", LOST),
        query: { REST: "ServiceUnavailable, 1", gRPC: "incomplete, 1" },
      },
      gRPC: repeated("ServiceUnavailable, 1", LOST),
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
    // Each attempt is two calls, because the library repeats such a call once by itself.
    expected: { ...all("ServiceUnavailable, 6"), insert: "OutcomeUnknown, 2" },
  },
  {
    name: "stream reset as too much, once",
    once: true,
    grpc: ({ stream }) => stream.close(NGHTTP2_ENHANCE_YOUR_CALM),
    expected: repeated("ok, 2", LOST),
  },
  {
    // As grpc-go does, whose servers allow a probe in five minutes.
    name: "connection ended for too many probes, once",
    once: true,
    grpc: ({ stream: { session } }) => {
      session?.goaway(NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
      session?.destroy();
    },
    expected: repeated("ok, 2", LOST),
  },
  {
    name: "restart during the call",
    once: true,
    policy: { retries: 8, backoffMs: 200, maxBackoffMs: 200 },
    rest: ({ upstream }) => upstream.restart(AWAY_MS),
    grpc: ({ upstream }) => upstream.restart(AWAY_MS),
    expected: repeated("ok, 2", LOST),
  },
  { name: "away", away: true, rest: answerRest, grpc: answerGrpc, expected: all("ServiceUnavailable, 0") },
];
