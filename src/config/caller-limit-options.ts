import type { RateLimit } from "../pipeline/rate-limit.ts";
import { type OptionTable, UsageError } from "./option-spec.ts";
import { parseDuration, parseInteger } from "./parsers.ts";

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

/** Options that limit what a single caller may take from the others. */
export const CALLER_LIMIT_OPTIONS = {
  rateLimits: {
    flag: "rate-limit",
    value: "SCOPE=N[:BURST]",
    help: "Maximum number of calls per second of each principal, from each address, or in total; BURST may come at once. Default: no limit.",
    parse: parseRateLimit,
    repeatable: true,
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
  maxQueryMs: {
    flag: "max-query-time",
    value: "TIME",
    help: "Maximum duration of a call that reads rows, to the end of its answer. Default: no limit.",
    parse: parseDuration,
  },
} as const satisfies OptionTable;
