import { one, perSecond, quantile, type Row } from "./panel.ts";

/** Codes of calls that failed through no fault of their callers. */
const FAULTS = 'code=~"Internal|ServiceUnavailable|DataLoss|OutcomeUnknown"';

const CALLS = perSecond("lance_gateway_calls_total", "database");

/** Panels about calls and connections. */
export const CALL_ROWS: readonly Row[] = [
  {
    title: "Calls",
    panels: [
      { title: "Gateways", unit: "short", queries: one("sum(up{SELECT})", "answer scrapes") },
      {
        title: "Calls by protocol",
        unit: "reqps",
        queries: one(perSecond("lance_gateway_calls_total", "protocol"), "{{protocol}}"),
      },
      {
        title: "Failed calls",
        description: "Share of the calls that failed through no fault of their callers.",
        unit: "percentunit",
        queries: one(
          // Without a fault, the share is 0 rather than unknown.
          `(${perSecond("lance_gateway_calls_total", "database", `,${FAULTS}`)} or 0 * ${CALLS}) / ${CALLS}`,
          "{{database}}",
        ),
      },
      {
        title: "Latency",
        unit: "s",
        queries: [0.5, 0.95, 0.99].map((share) => ({
          expr: quantile(share, "lance_gateway_call_seconds", "le"),
          legend: `p${share * 100}`,
        })),
      },
      {
        title: "Calls by operation",
        unit: "reqps",
        queries: one(`topk(10, ${perSecond("lance_gateway_calls_total", "operation")})`, "{{operation}}"),
      },
      {
        title: "Latency by operation, p99",
        unit: "s",
        queries: one(
          `topk(10, ${quantile(0.99, "lance_gateway_call_seconds", "operation, le")})`,
          "{{operation}}",
        ),
      },
      {
        title: "Calls by code",
        unit: "reqps",
        queries: one(perSecond("lance_gateway_calls_total", "code"), "{{code}}"),
      },
      {
        title: "Running calls",
        unit: "short",
        queries: one("sum by (instance) (lance_gateway_calls_running{SELECT})", "{{instance}}"),
      },
    ],
  },
  {
    title: "Refusals",
    panels: [
      {
        title: "Calls that met a limit",
        unit: "reqps",
        queries: one(perSecond("lance_gateway_calls_limited_total", "limit"), "{{limit}}"),
      },
      {
        title: "Requests that never became a call",
        unit: "reqps",
        queries: one(
          perSecond("lance_gateway_requests_refused_total", "protocol, code"),
          "{{protocol}} {{code}}",
        ),
      },
      {
        title: "Credentials",
        unit: "reqps",
        queries: one(perSecond("lance_gateway_credentials_total", "way, outcome"), "{{way}} {{outcome}}"),
      },
      {
        title: "Decisions of policies",
        unit: "reqps",
        queries: one(perSecond("lance_gateway_policy_decisions_total", "decision"), "{{decision}}"),
      },
    ],
  },
  {
    title: "Traffic",
    panels: [
      {
        title: "Arrow bodies",
        unit: "Bps",
        queries: one(
          perSecond("lance_gateway_arrow_bytes_total", "operation, direction"),
          "{{operation}} {{direction}}",
        ),
      },
      {
        title: "Network",
        unit: "Bps",
        queries: one(perSecond("lance_gateway_network_bytes_total", "direction"), "{{direction}}"),
      },
      {
        title: "Open connections",
        unit: "short",
        queries: one("sum by (instance) (lance_gateway_connections{SELECT})", "{{instance}}"),
      },
      {
        title: "New connections",
        unit: "cps",
        queries: one(perSecond("lance_gateway_connections_accepted_total", "instance"), "{{instance}}"),
      },
    ],
  },
];
