/** A metric of the gateway, as in `/metrics` and the docs. */
export interface MetricDeclaration {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

/**
 * The metrics of the gateway. The values of labels come from the contract, the error table and the configuration,
 * never from a client.
 */
export const METRICS = {
  calls: {
    name: "lance_gateway_calls_total",
    type: "counter",
    labels: ["operation", "protocol", "code", "database"],
    help: "Calls that ended; code is OK or a name of the error table, database is empty without one.",
  },
  refusals: {
    name: "lance_gateway_requests_refused_total",
    type: "counter",
    labels: ["protocol", "code"],
    help: "Requests that never became a call; code is a name of the error table, protocol is http where none could read it.",
  },
  seconds: {
    name: "lance_gateway_call_seconds",
    type: "histogram",
    labels: ["operation", "protocol"],
    help: "How long calls took, to the end of their answers, in seconds.",
  },
  running: {
    name: "lance_gateway_calls_running",
    type: "gauge",
    labels: [],
    help: "Calls that are running.",
  },
  bytes: {
    name: "lance_gateway_arrow_bytes_total",
    type: "counter",
    labels: ["operation", "direction"],
    help: "Bytes of the Arrow bodies of calls that ended, received or sent.",
  },
  decisions: {
    name: "lance_gateway_upstream_decisions_total",
    type: "counter",
    labels: ["database", "decision"],
    help: "Decisions about upstreams.",
  },
} as const satisfies Record<string, MetricDeclaration>;

/** Upper bounds of the histogram of seconds; a last bucket counts longer calls. */
export const SECONDS_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];
