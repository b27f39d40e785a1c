import type { OptionTable } from "../option-spec.ts";
import { parseChoice, parseInteger, parseSocketPath, parseText } from "../parsers.ts";

/** Options of the port for operators (docs/observability.md#admin-port). */
export const ADMIN_OPTIONS = {
  adminPort: {
    flag: "admin-port",
    value: "N",
    help: "Port for operators: metrics, probes, configuration, log level, heap snapshots and CPU profiles; 0 for a free one. Default: none.",
    parse: parseInteger(0, 65_535),
  },
  adminHost: {
    flag: "admin-host",
    value: "H",
    help: "Address of --admin-port. Callers from other machines get only metrics and probes there.",
    fallback: "127.0.0.1",
    parse: parseText,
    needs: { flag: "admin-port" },
  },
  adminSocketPath: {
    flag: "admin-listen",
    value: "unix:PATH",
    help: "Unix socket for operators, in place of --admin-port, for the gateway's own user alone.",
    parse: parseSocketPath,
  },
  metricsOn: {
    flag: "metrics-on",
    value: "data|admin|both",
    help: "Ports that have /metrics: that of the API (data), the one for operators (admin) or both.",
    fallback: "both",
    parse: parseChoice(["data", "admin", "both"]),
  },
} as const satisfies OptionTable;
