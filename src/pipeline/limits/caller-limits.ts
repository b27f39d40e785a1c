import { type CellShape, type OpenCells, openCells } from "../../runtime/threads/keyed-cells.ts";
import type { Interceptor } from "../call/interceptor.ts";
import { limitCallers } from "./concurrency.ts";
import { limitQueryTime } from "./query-time.ts";
import { createQuota, QUOTA_SHAPE, type Quota } from "./quotas.ts";
import { limitRate, type RateLimit, type RateScope } from "./rate-limit.ts";
import { BUCKETS_SHAPE, createTokenBuckets, type TokenBuckets } from "./token-buckets.ts";

/** Limits on what a single caller may take from the others. Default of each: no limit. */
export interface CallerLimits {
  readonly rateLimits?: readonly RateLimit[] | undefined;
  /** Concurrent calls of a caller. */
  readonly maxCallerCalls?: number | undefined;
  /** Concurrent downloads of a caller. */
  readonly maxCallerDownloads?: number | undefined;
  /** Memory for the Arrow bodies of a caller's calls, in bytes. */
  readonly maxCallerBytes?: number | undefined;
  /** Duration of a call that reads rows, in milliseconds. */
  readonly maxQueryMs?: number | undefined;
  /** Rows of a query. */
  readonly maxQueryRows?: number | undefined;
}

/** Where the limits of callers are counted. */
export interface CallerCounters {
  /** Opens the numbers that the workers of a process share. Default: numbers of this thread. */
  readonly openCells?: OpenCells | undefined;
  /** Returns buckets that other gateways share. Default: there are none. */
  readonly shareBuckets?: ((limit: RateLimit, local: TokenBuckets) => TokenBuckets) | undefined;
}

const ownCells: OpenCells = (_name, shape) => openCells(shape);

/** Shape of the numbers of buckets for a single key. */
const SINGLE_SHAPE: CellShape = { ...BUCKETS_SHAPE, keys: 16 };

/** Returns the shapes of the numbers of all limits, by the names under which they are opened. */
export function cellsOfLimits(limits: CallerLimits): Readonly<Record<string, CellShape>> {
  const { rateLimits = [], maxCallerCalls, maxCallerDownloads, maxCallerBytes } = limits;
  const rates = rateLimits.map((limit, index) => [rateName(index), rateShape(limit)] as const);
  const quotas = { calls: maxCallerCalls, downloads: maxCallerDownloads, bytes: maxCallerBytes };
  const given = Object.entries(quotas).filter(([, max]) => max !== undefined);
  return Object.fromEntries([...rates, ...given.map(([name]) => [name, QUOTA_SHAPE] as const)]);
}

const rateName = (index: number) => `rate ${index}`;
const rateShape = ({ scope }: RateLimit) => (scope === "total" ? SINGLE_SHAPE : BUCKETS_SHAPE);

/** Returns the step for limits that need no caller, so that strangers cannot keep the later steps busy. */
export function limitAddresses(limits: CallerLimits & CallerCounters): readonly Interceptor[] {
  return rateStep(limits, ["address"]);
}

/** Returns the steps for the limits of callers that are known. The total comes last, so that refused calls do not use it up. */
export function limitKnownCallers(limits: CallerLimits & CallerCounters): readonly Interceptor[] {
  const { maxCallerCalls: calls, maxCallerDownloads: downloads, maxQueryMs, openCells = ownCells } = limits;
  const cells = (name: string) => openCells(name, QUOTA_SHAPE);
  return [
    ...rateStep(limits, ["principal", "total"]),
    ...(calls === undefined ? [] : [limitCallers(calls, "calls", cells("calls"))]),
    ...(downloads === undefined ? [] : [limitCallers(downloads, "downloads", cells("downloads"))]),
    ...(maxQueryMs === undefined ? [] : [limitQueryTime(maxQueryMs)]),
  ];
}

/** Returns the quota of bytes in the memory of a caller's uploads; undefined without a limit. */
export function callerBytes({
  maxCallerBytes,
  openCells = ownCells,
}: CallerLimits & CallerCounters): Quota | undefined {
  return maxCallerBytes === undefined
    ? undefined
    : createQuota(maxCallerBytes, openCells("bytes", QUOTA_SHAPE));
}

function rateStep(
  {
    rateLimits = [],
    openCells = ownCells,
    shareBuckets = (_, local) => local,
  }: CallerLimits & CallerCounters,
  scopes: readonly RateScope[],
): readonly Interceptor[] {
  const counted = rateLimits.map((limit, index) => {
    const open = () => createTokenBuckets(limit, openCells(rateName(index), rateShape(limit)));
    return { limit, open };
  });
  const own = scopes.flatMap((scope) => counted.filter(({ limit }) => limit.scope === scope));
  if (own.length === 0) return [];
  return [limitRate(own.map(({ limit, open }) => ({ limit, buckets: shareBuckets(limit, open()) })))];
}
