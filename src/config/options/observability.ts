import type { OptionTable } from "../option-spec.ts";
import { parseChoice, parseProxies, parseText } from "../parsers.ts";

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
