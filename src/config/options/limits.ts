import { DEFAULT_MAX_MESSAGE_BYTES } from "../../namespace/memory/byte-budget.ts";
import type { RateLimit } from "../../pipeline/limits/rate-limit.ts";
import { BACKEND_KINDS, type OptionTable, UsageError } from "../option-spec.ts";
import { parseDuration, parseInteger, parseSize, parseText } from "../parsers.ts";

/** Options that limit memory, time and the number of requests. */
export const LIMIT_OPTIONS = {
  maxMessageBytes: {
    flag: "max-message-size",
    value: "SIZE",
    help: "Maximum size of a JSON body, and of a single message of the other protocols.",
    fallback: `${DEFAULT_MAX_MESSAGE_BYTES / 2 ** 20}MiB`,
    parse: parseSize,
  },
  maxUploadBytes: {
    flag: "max-upload-size",
    value: "SIZE",
    help: "Maximum size of the Arrow body of one call.",
    fallback: "1GiB",
    parse: parseSize,
    backends: BACKEND_KINDS,
  },
  maxBufferedBytes: {
    flag: "max-buffered-size",
    value: "SIZE",
    help: "Memory for the bodies and messages of all requests together; the gateway refuses a request past it with 429, or with 413 if the request does not fit alone. Answers of upstreams have half as much in addition.",
    fallback: "1GiB",
    parse: parseSize,
  },
  readAheadBytes: {
    flag: "read-ahead-size",
    value: "SIZE",
    help: "Memory for query results that the engine reads ahead of clients, over all databases; further results wait.",
    fallback: "128MiB",
    parse: parseSize,
  },
  maxConcurrentCalls: {
    flag: "max-concurrent-calls",
    value: "N",
    help: "Maximum number of calls at a time; the gateway refuses more. Default: no limit.",
    parse: parseInteger(1, 1_000_000),
    backends: BACKEND_KINDS,
  },
  maxConnections: {
    flag: "max-connections",
    value: "N",
    help: "Maximum number of connections. Beyond it a new one takes the place of an idle one, or of one of the address with the most; without any, the gateway answers only probes over HTTP/1.1.",
    fallback: "4096",
    parse: parseInteger(1, 1_000_000),
  },
  silenceMs: {
    flag: "client-idle-timeout",
    value: "TIME",
    help: "Maximum time in which a client sends nothing of a body or takes nothing of an answer; 0s for no limit.",
    fallback: "60s",
    parse: parseDuration,
  },
  defaultDeadlineMs: {
    flag: "default-deadline",
    value: "TIME",
    help: "Deadline of calls that bring none, except those with Arrow bodies; 0s for no limit.",
    fallback: "1h",
    parse: parseDuration,
  },
} as const satisfies OptionTable;

const SCOPES = ["principal", "address", "total"] as const;
const RATE = /^(\w+)=(\d{1,7})(?::(\d{1,7}))?$/;

/** Parses a rate such as `principal=100` or `address=50:200`; the burst is that of a second by default. */
function parseRateLimit(text: string): RateLimit {
  const [, name, rate, burst = rate] = RATE.exec(text) ?? [];
  const scope = SCOPES.find((each) => each === name);
  const [perSecond, most] = [Number(rate), Number(burst)];
  if (scope === undefined || !(perSecond >= 1 && most >= 1)) {
    throw new UsageError("must be a rate such as principal=100, address=50:200 or total=5000");
  }
  return { scope, perSecond, burst: most };
}

/** Parses the address of a server of the Redis protocol. */
function parseRedisUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!/^rediss?:$/.test(url?.protocol ?? "") || !url?.hostname) {
    throw new UsageError("must be a URL such as redis://redis.example.com:6379");
  }
  if (url.password === "") return text;
  throw new UsageError("must have no password, which belongs in --rate-limit-redis-password-file");
}

/** Options that limit what a single caller may take from the others. */
export const CALLER_LIMIT_OPTIONS = {
  rateLimits: {
    flag: "rate-limit",
    value: "SCOPE=N[:BURST]",
    help: "Maximum number of calls per second of each principal, from each address, or in total; BURST may come at once. Default: no limit.",
    parse: parseRateLimit,
    repeatable: true,
  },
  rateLimitRedis: {
    flag: "rate-limit-redis",
    value: "URL",
    secret: true,
    help: "Server of the Redis protocol on which gateways share the rates, redis://[USER@]HOST:PORT or rediss:// for TLS. Default: each process counts for itself.",
    parse: parseRedisUrl,
  },
  rateLimitRedisPasswordFile: {
    flag: "rate-limit-redis-password-file",
    value: "FILE",
    help: "File with the password for --rate-limit-redis. The gateway reads it for each connection.",
    parse: parseText,
  },
  rateLimitRedisCa: {
    flag: "rate-limit-redis-ca",
    value: "FILE",
    help: "Certificates of the authorities that may have signed that of --rate-limit-redis. Default: those that Node.js trusts.",
    parse: parseText,
    isFile: true,
  },
  rateLimitRedisPrefix: {
    flag: "rate-limit-redis-prefix",
    value: "NAME",
    help: "Beginning of the keys on --rate-limit-redis; gateways with the same one share their rates.",
    fallback: "lance-gateway",
    parse: parseText,
  },
  maxCallerCalls: {
    flag: "max-calls-per-principal",
    value: "N",
    help: "Maximum number of concurrent calls of a principal, or from an address without one. Default: no limit.",
    parse: parseInteger(1, 1_000_000),
  },
  maxCallerDownloads: {
    flag: "max-downloads-per-principal",
    value: "N",
    help: "Maximum number of concurrent query results of a principal, or from an address without one. Default: no limit.",
    parse: parseInteger(1, 1_000_000),
  },
  maxCallerBytes: {
    flag: "max-buffered-size-per-principal",
    value: "SIZE",
    help: "Memory for the Arrow bodies of a principal's calls together, or of those from an address without one. Default: no limit.",
    parse: parseSize,
  },
  maxQueryMs: {
    flag: "max-query-time",
    value: "TIME",
    help: "Maximum duration of a call that reads rows, to the end of its answer. Default: no limit.",
    parse: parseDuration,
  },
  maxQueryRows: {
    flag: "max-query-rows",
    value: "N",
    help: "Maximum number of rows of a query; the gateway refuses one that may have more. Default: no limit.",
    parse: parseInteger(1, 1_000_000_000),
  },
} as const satisfies OptionTable;
