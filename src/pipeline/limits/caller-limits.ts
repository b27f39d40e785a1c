import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { beforeEnd } from "../../runtime/promises.ts";
import { type CellShape, type OpenCells, openCells } from "../../runtime/threads/keyed-cells.ts";
import { type Interceptor, isStream, type OperationResponse, onlyFor } from "../call/interceptor.ts";
import { limitCallers } from "./concurrency.ts";
import { createQuota, QUOTA_SHAPE, type Quota } from "./quotas.ts";
import {
  BUCKETS_SHAPE,
  createTokenBuckets,
  limitRate,
  type RateLimit,
  type RateScope,
  type TokenBuckets,
} from "./rate-limit.ts";

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

/**
 * Bounds the duration of calls that read rows, to the end of their answers; beyond it they end with DeadlineExceeded. The backend
 * gets the end as the deadline of the call.
 *
 * @param maxMs in milliseconds
 */
export function limitQueryTime(maxMs: number): Interceptor {
  const error = new LanceError("DeadlineExceeded", `query time limit of ${maxMs} ms exceeded`, {
    limit: "query_time",
  });

  async function* limited(messages: AsyncIterable<Message>, late: Promise<never>, done: () => void) {
    const iterator = messages[Symbol.asyncIterator]();
    const wait = beforeEnd(late);
    try {
      for (;;) {
        const { done: ended, value } = await wait(iterator.next());
        if (ended) return;
        yield value as never;
      }
    } finally {
      done();
      // A backend that hangs must not hold the end of the call.
      void Promise.resolve(iterator.return?.()).catch(() => {});
    }
  }

  const limit: Interceptor = async (call, request, next) => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    late.catch(() => {});
    const end = Date.now() + maxMs;
    shortenDeadline(call, end);
    const timer = setTimeout(() => {
      reject(error);
      call.cutOff?.(error);
    }, maxMs);
    const done = () => clearTimeout(timer);
    let streams = false;
    try {
      const answering = next(call, request);
      const response = await Promise.race([answering, late]).catch((thrown: unknown) => {
        answering.then(endStream).catch(() => {});
        throw thrown;
      });
      if (!isStream(response)) return response;
      streams = true;
      return limited(response, late, done) as AsyncIterable<never>;
    } finally {
      if (!streams) done();
    }
  };
  return onlyFor(({ action }) => action === "read", limit);
}

/** Frees what a stream holds that nobody reads; one that never begins would keep it. */
async function endStream(response: OperationResponse): Promise<void> {
  if (!isStream(response)) return;
  for await (const _ of response) return;
}

function shortenDeadline(call: Call, end: number): void {
  if (call.deadline === undefined || call.deadline > end) call.deadline = end;
}
