import type { OptionTable } from "../option-spec.ts";
import {
  parseChoice,
  parseInteger,
  parseProxies,
  parseSize,
  parseSocketPath,
  parseSwitch,
  parseText,
} from "../parsers.ts";

/** Options about what the gateway reports of its requests (docs/observability.md). */
export const OBSERVABILITY_OPTIONS = {
  accessLog: {
    flag: "access-log",
    value: "FILE",
    help: "File to which the gateway appends a line of JSON about each request, refused ones included; - for standard output (docs/observability.md#access-log). Default: no access log.",
    parse: parseText,
  },
  trustedProxies: {
    flag: "trusted-proxy",
    value: "CIDR",
    help: "Network of proxies that name the client in a header, such as 10.0.0.0/8; unix for callers of a Unix socket. Default: the client is the peer of the connection.",
    parse: parseProxies,
    repeatable: true,
    commas: true,
  },
  trustedProxyHeader: {
    flag: "trusted-proxy-header",
    value: "NAME",
    help: "Header in which these proxies name the client: x-forwarded-for or forwarded (RFC 7239). The other one does not count, because clients can send it through the proxies.",
    fallback: "x-forwarded-for",
    parse: parseChoice(["x-forwarded-for", "forwarded"]),
    needs: { flag: "trusted-proxy" },
  },
} as const satisfies OptionTable;

/** Options of the audit log (docs/audit.md). */
export const AUDIT_OPTIONS = {
  auditLog: {
    flag: "audit-log",
    value: "FILE",
    help: "File to which the gateway appends a line of JSON about each call; - for standard output. Default: no audit log.",
    parse: parseText,
  },
  auditRequired: {
    flag: "audit-required",
    help: "Fail calls whose line cannot be written to the audit log, with 503.",
    fallback: "false",
    parse: parseSwitch,
  },
  auditMaxBytes: {
    flag: "audit-max-bytes",
    value: "SIZE",
    help: "Size at which the gateway renames the audit log and begins a new file; refused calls without credentials then have a file of their own. Default: the file grows until somebody moves it.",
    parse: parseSize,
  },
  auditFiles: {
    flag: "audit-files",
    value: "N",
    help: "Number of renamed audit logs that the gateway keeps of each file; it deletes the oldest.",
    fallback: "10",
    parse: parseInteger(1, 10_000),
    needs: { flag: "audit-max-bytes" },
  },
} as const satisfies OptionTable;

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
