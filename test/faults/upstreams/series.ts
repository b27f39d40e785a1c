import type { ResiliencePolicy } from "../../../src/backends/resilience/resilience.ts";
import { createCaller } from "../../support/caller.ts";
import { FAULTS, type Fault, PATIENCE_MS, type Wire } from "./faults.ts";
import { answerGrpc, refuseGrpc } from "./grpc-upstream.ts";
import { openBackend, startUpstream } from "./measure.ts";
import { answerRest, refuseRest } from "./rest-upstream.ts";
import type { FaultyUpstream } from "./upstream.ts";

/** Many reads, one after the other, of an upstream with one or more addresses, and their expected outcome. */
export interface Series {
  readonly name: string;
  /** The fault of each address. */
  readonly addresses: readonly Fault[];
  readonly policy: ResiliencePolicy;
  readonly reads: number;
  /** Number of reads that must succeed. */
  readonly answered: number;
  /** Minimum and maximum number of calls that the first address may get. */
  readonly calls: readonly [fewest: number, most: number];
  /** Number of further calls that it may get in each second of the series. Default: 0. */
  readonly callsPerSecond?: number;
}

const named = (name: string) => FAULTS.find((fault) => fault.name === name) as Fault;
const unavailable = named("503 with Retry-After");
const well: Fault = {
  name: "well",
  rest: answerRest,
  grpc: answerGrpc,
  expected: unavailable.expected,
};
const isOdd = ({ upstream }: { upstream: FaultyUpstream }) => upstream.calls("describe") % 2 === 1;
const alternating: Fault = {
  ...well,
  rest: (exchange) =>
    isOdd(exchange) ? refuseRest(exchange, "503 Service Unavailable", 0) : answerRest(exchange),
  grpc: (exchange) => (isOdd(exchange) ? refuseGrpc(exchange, 14, 0) : answerGrpc(exchange)),
};
/** Duration that is longer than any series, in milliseconds. */
const circuitOpenMs = 60_000;

/**
 * Returns the series of an upstream whose first address never answers.
 *
 * @param hedgeAfterMs time after which the gateway hedges a read, in milliseconds.
 * @param onAsked called when the first address gets a call.
 */
export function hedgedSeries(hedgeAfterMs: number, onAsked: () => void): Series {
  return {
    name: `one of two addresses is slow, reads are hedged after ${hedgeAfterMs} ms`,
    addresses: [{ ...well, rest: onAsked, grpc: onAsked }, well],
    policy: { hedgeAfterMs, retryShare: 1 },
    reads: 20,
    answered: 20,
    calls: [5, 12],
  };
}

/** All series but the hedged one. */
export const SERIES: readonly Series[] = [
  {
    name: "503 for good: the circuit opens",
    addresses: [unavailable],
    policy: { retries: 0, circuitOpenMs },
    reads: 50,
    answered: 0,
    calls: [10, 10],
  },
  {
    name: "503 for good, without a circuit: the budget ends the repetitions",
    addresses: [unavailable],
    policy: { circuitFailures: 0, backoffMs: 1 },
    reads: 50,
    answered: 0,
    // These are 10 initial repetitions, 10 earned by 50 calls, and some for the seconds of the series.
    calls: [60, 71],
    callsPerSecond: 3,
  },
  {
    name: "one of two addresses answers 503",
    addresses: [unavailable, well],
    policy: { circuitOpenMs },
    reads: 50,
    answered: 50,
    calls: [10, 10],
  },
  {
    name: "one of two addresses is away",
    addresses: [named("away"), well],
    policy: { circuitOpenMs },
    reads: 50,
    answered: 50,
    calls: [0, 0],
  },
  {
    name: "one of two addresses fails every other call",
    addresses: [alternating, well],
    policy: { ejectMs: 60_000 },
    reads: 50,
    answered: 50,
    calls: [8, 13],
  },
];

/** The outcome of a series. */
export interface SeriesOutcome {
  readonly answered: number;
  /** Number of calls that each address got. */
  readonly calls: readonly number[];
  /** Time in which retries were earned: the duration of all reads and of the start before them, in seconds. */
  readonly seconds: number;
  /** Median and maximum duration of a read, in milliseconds. */
  readonly p50Ms: number;
  readonly maxMs: number;
}

const MIB = 1024 * 1024;

/** Runs a series over one protocol. */
export async function runSeries({ addresses, policy, reads }: Series, wire: Wire): Promise<SeriesOutcome> {
  const upstreams = (await Promise.all(
    addresses.map((fault) => startUpstream(fault, wire)),
  )) as FaultyUpstream[];
  const ports = upstreams.map(({ port }) => port);
  const opened = performance.now();
  const backend = await openBackend(wire, ports, policy, PATIENCE_MS.other);
  const client = createCaller({ backend, limits: { maxUploadBytes: MIB } });
  const times: number[] = [];
  let answered = 0;
  try {
    for (let read = 0; read < reads; read += 1) {
      const started = performance.now();
      const answer = await client.describeTable({ id: ["t"] }).catch(() => undefined);
      times.push(performance.now() - started);
      if (answer?.table === "t") answered += 1;
    }
    const seconds = (performance.now() - opened) / 1000;
    times.sort((a, b) => a - b);
    const calls = upstreams.map((upstream) => upstream.calls("describe"));
    return { answered, calls, seconds, p50Ms: times[reads >> 1] as number, maxMs: times.at(-1) as number };
  } finally {
    await backend.close();
    for (const upstream of upstreams) upstream.stop();
  }
}
