import { type OptionTable, RESILIENT_KINDS } from "../option-spec.ts";
import { parseDuration, parseInteger } from "../parsers.ts";

/** Options for retries, limits, hedging and circuit breakers of upstream calls. */
export const RESILIENCE_OPTIONS = {
  upstreamRetries: {
    flag: "upstream-retries",
    value: "N",
    help: "Maximum number of retries of an upstream call, where a retry is safe; 0 for none (docs/upstreams.md).",
    fallback: "2",
    parse: parseInteger(0, 10),
    backends: RESILIENT_KINDS,
  },
  upstreamRetryPercent: {
    flag: "upstream-retry-budget",
    value: "PERCENT",
    help: "Maximum number of retries for every hundred calls; beyond it three a second.",
    fallback: "20",
    parse: parseInteger(0, 100),
    backends: RESILIENT_KINDS,
  },
  upstreamMaxCalls: {
    flag: "upstream-max-calls",
    value: "N",
    help: "Maximum number of calls in flight at one address of the upstream; more wait. Default: 64 for REST, where each takes a connection, and 1000 for gRPC.",
    parse: parseInteger(1, 100_000),
    backends: RESILIENT_KINDS,
  },
  upstreamMaxWaiting: {
    flag: "upstream-max-waiting",
    value: "N",
    help: "Maximum number of calls that wait for one address of the upstream; the gateway refuses more with Throttling.",
    fallback: "1000",
    parse: parseInteger(0, 1_000_000),
    backends: RESILIENT_KINDS,
  },
  upstreamHedgeMs: {
    flag: "upstream-hedge-after",
    value: "TIME",
    help: "Time without an answer after which a read is also sent a second time, to another address if there is one; 0ms for never.",
    fallback: "0ms",
    parse: parseDuration,
    backends: RESILIENT_KINDS,
  },
  upstreamCircuitFailures: {
    flag: "upstream-circuit-failures",
    value: "N",
    help: "Number of failures in a row that open the circuit of an address; 0 for never.",
    fallback: "10",
    parse: parseInteger(0, 1_000_000),
    backends: RESILIENT_KINDS,
  },
  upstreamCircuitOpenMs: {
    flag: "upstream-circuit-open",
    value: "TIME",
    help: "Time for which a circuit stays open; it doubles with each failed probe, up to a minute.",
    fallback: "1s",
    parse: parseDuration,
    backends: RESILIENT_KINDS,
  },
  upstreamSilenceMs: {
    flag: "upstream-circuit-silence",
    value: "TIME",
    help: "Minimum silence of an address after which a call that its client cancels counts as a failure of the address; 0s for never.",
    fallback: "5s",
    parse: parseDuration,
    backends: RESILIENT_KINDS,
  },
} as const satisfies OptionTable;
