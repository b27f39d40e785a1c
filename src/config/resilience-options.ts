import { type OptionSpec, parseDuration, parseInteger, UPSTREAM_KINDS } from "./option-spec.ts";

/** The options that say how calls of an upstream are repeated, and when they are not made. */
export const RESILIENCE_OPTIONS = {
  upstreamRetries: {
    flag: "upstream-retries",
    value: "N",
    help: "How often a call of the upstream is made again at the most, where that is safe; 0 for never (docs/upstreams.md).",
    fallback: "2",
    parse: parseInteger(0, 10),
    backends: UPSTREAM_KINDS,
  },
  upstreamRetryPercent: {
    flag: "upstream-retry-budget",
    value: "PERCENT",
    help: "How many calls may be made again for every hundred calls; beyond that there are three a second.",
    fallback: "20",
    parse: parseInteger(0, 100),
    backends: UPSTREAM_KINDS,
  },
  upstreamMaxCalls: {
    flag: "upstream-max-calls",
    value: "N",
    help: "Maximum number of calls under way at one address of the upstream; more wait. By default 64 for REST, where each takes a connection, and 1000 for gRPC.",
    parse: parseInteger(1, 100_000),
    backends: UPSTREAM_KINDS,
  },
  upstreamMaxWaiting: {
    flag: "upstream-max-waiting",
    value: "N",
    help: "Maximum number of calls that wait for one address of the upstream; more are refused at once with Throttling.",
    fallback: "1000",
    parse: parseInteger(0, 1_000_000),
    backends: UPSTREAM_KINDS,
  },
  upstreamHedgeMs: {
    flag: "upstream-hedge-after",
    value: "TIME",
    help: "After which time a read without an answer is made a second time at once, at another address if there is one; 0ms for never.",
    fallback: "0ms",
    parse: parseDuration,
    backends: UPSTREAM_KINDS,
  },
  upstreamCircuitFailures: {
    flag: "upstream-circuit-failures",
    value: "N",
    help: "After how many failures in a row an address of the upstream is not called for a while; 0 for never.",
    fallback: "10",
    parse: parseInteger(0, 1_000_000),
    backends: UPSTREAM_KINDS,
  },
  upstreamCircuitOpenMs: {
    flag: "upstream-circuit-open",
    value: "TIME",
    help: "How long that is; it doubles with each probe that fails, up to a minute.",
    fallback: "1s",
    parse: parseDuration,
    backends: UPSTREAM_KINDS,
  },
  upstreamSilenceMs: {
    flag: "upstream-circuit-silence",
    value: "TIME",
    help: "Minimum time without any answer from an address after which a call that its client gives up counts as a failure of the address; 0s for never.",
    fallback: "5s",
    parse: parseDuration,
    backends: UPSTREAM_KINDS,
  },
} as const satisfies Record<string, OptionSpec>;
