import type { OptionTable } from "../option-spec.ts";
import {
  parseChoice,
  parseDuration,
  parseFileMode,
  parseHost,
  parseInteger,
  parseOrigin,
  parseSocketPath,
  parseSwitch,
  parseText,
  parseWorkers,
  parseWorkerTimeout,
} from "../parsers.ts";

/** Levels of the log, from the most to the least talkative. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

/** Forms of the log: `auto` is text on a terminal, and JSON elsewhere. */
const LOG_FORMATS = ["auto", "json", "text"] as const;

/** Options of the server: where it listens, which callers it answers, what it reports and how it ends. */
export const SERVER_OPTIONS = {
  host: {
    flag: "host",
    value: "H",
    help: "Address to listen on.",
    fallback: "127.0.0.1",
    parse: parseText,
    common: "Address to listen on.",
    needs: { flag: "listen", absent: true },
  },
  port: {
    flag: "port",
    value: "N",
    help: "Port to listen on; 0 for a free one.",
    fallback: "2333",
    parse: parseInteger(0, 65_535),
    common: "Port to listen on; 0 for a free one.",
    needs: { flag: "listen", absent: true },
  },
  socketPath: {
    flag: "listen",
    value: "unix:PATH",
    help: "Unix socket to listen on in place of --host and --port, for callers on this machine (docs/security.md#unix-sockets).",
    parse: parseSocketPath,
  },
  socketMode: {
    flag: "listen-mode",
    value: "MODE",
    help: "Mode of the file of --listen, in octal digits: who may write it may connect.",
    fallback: "0600",
    parse: parseFileMode,
    needs: { flag: "listen" },
  },
  workers: {
    flag: "workers",
    value: "N|auto",
    help: "Number of threads that serve, each with an event loop of its own on the same port; auto for one per core (docs/architecture.md#workers).",
    fallback: "1",
    parse: parseWorkers,
    common: "Number of threads; auto for one per core.",
  },
  workerTimeoutMs: {
    flag: "worker-timeout",
    value: "TIME",
    help: "Time after which a worker whose event loop is blocked is replaced; its connections are lost.",
    fallback: "30s",
    parse: parseWorkerTimeout,
    needs: { flag: "workers", isNot: ["1"] },
  },
  corsOrigins: {
    flag: "cors-origin",
    value: "ORIGIN",
    help: "Origin whose pages may call from browsers, such as https://app.example.com, or * for any. Default: the gateway's own origin.",
    parse: parseOrigin,
    repeatable: true,
  },
  allowedHosts: {
    flag: "allowed-host",
    value: "HOST",
    help: "Host that requests may name, such as lance.example.com, *.example.com or * for any; addresses and localhost are always allowed. Default: any host, or on a loopback address only localhost and the value of --host.",
    parse: parseHost,
    repeatable: true,
  },
  plugins: {
    flag: "plugin",
    key: "plugins",
    value: "MODULE",
    help: "Package or ./file with interceptors, Fastify plugins or backends (docs/extending.md).",
    parse: parseText,
    repeatable: true,
  },
  logLevel: {
    flag: "log-level",
    value: "LEVEL",
    help: "Lowest level of the log on standard error; debug logs every call.",
    fallback: "info",
    parse: parseChoice(LOG_LEVELS),
    common: "Log from debug, info, warn or error.",
  },
  logFormat: {
    flag: "log-format",
    value: "FORMAT",
    help: "Form of the log: json, text for people, or auto: text on a terminal, and JSON elsewhere.",
    fallback: "auto",
    parse: parseChoice(LOG_FORMATS),
    common: "Form of the log: auto, json or text.",
  },
  noMetrics: {
    flag: "no-metrics",
    help: "Turn off /metrics and the counting for it (docs/observability.md).",
    fallback: "false",
    parse: parseSwitch,
  },
  noDocs: {
    flag: "no-docs",
    help: "Turn off /openapi.json and the page /docs (docs/contract.md#openapi).",
    fallback: "false",
    parse: parseSwitch,
  },
  noConsole: {
    flag: "no-console",
    help: "Turn off the console at /console (docs/console.md).",
    fallback: "false",
    parse: parseSwitch,
  },
  noMcp: {
    flag: "no-mcp",
    help: "Turn off the Model Context Protocol for agents at /mcp (docs/mcp.md).",
    fallback: "false",
    parse: parseSwitch,
  },
  mcpWrites: {
    flag: "mcp-writes",
    help: "Offer agents tools that change data, within the permissions of each caller.",
    fallback: "false",
    parse: parseSwitch,
  },
  keepAliveMs: {
    flag: "keep-alive",
    value: "TIME",
    help: "Time after which an idle HTTP/1.1 connection is closed. Use more than a proxy in front of the gateway does.",
    fallback: "620s",
    parse: parseDuration,
  },
  drainDelayMs: {
    flag: "drain-delay",
    value: "TIME",
    help: "Time after SIGTERM or SIGINT during which the gateway still serves calls and reports that it is not ready. Default: 5s after SIGTERM in a container; 0s after SIGINT (Ctrl-C), elsewhere and at a terminal.",
    parse: parseDuration,
  },
  drainSeconds: {
    flag: "drain-seconds",
    value: "N",
    help: "Maximum time for running calls to finish after the drain delay, in seconds.",
    fallback: "30",
    parse: parseInteger(0, 3_600),
  },
} as const satisfies OptionTable;
