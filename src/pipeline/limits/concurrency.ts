import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import { type SharedQuantity, UNSHARED } from "../../runtime/threads/sharing.ts";
import { type Databases, databaseOf } from "../call/databases.ts";
import {
  type Interceptor,
  isStream,
  type Next,
  type OperationRequest,
  onlyFor,
} from "../call/interceptor.ts";
import { createQuota } from "./quotas.ts";
import { createRefusalDelay, type DelayRefusal } from "./rate-limit.ts";

/** Places for the calls that run at a time. */
interface Places {
  /** Takes a place; returns false if there is none. */
  enter(): boolean;
  leave(): void;
  /** Text of the refusal. */
  readonly refusal: string;
  /** Waits before the refusal. Default: it goes out at once. */
  readonly delay?: DelayRefusal;
}

/**
 * Bounds the concurrent calls of each database; it refuses the next call with Throttling. A download runs until its
 * reader has finished or left the stream.
 */
export function limitConcurrency(databases: Databases): Interceptor {
  const limited = [...new Set(databases.values())].flatMap((database) => {
    const { calls, limits } = database;
    const { maxConcurrentCalls: max } = limits;
    return max === undefined ? [] : [[database, placesOf(max, calls)] as const];
  });
  const places = new Map<unknown, Places>(limited);
  return (call, request, next) => {
    const database = places.get(databaseOf(databases, call));
    return database === undefined ? next(call, request) : holding(database, call, request, next);
  };
}

/**
 * Bounds the concurrent calls of each caller, or only its downloads, like {@link limitConcurrency}. Calls without a caller count for
 * their address. A refusal waits for a moment.
 */
export function limitCallers(max: number, what: "calls" | "downloads", cells: KeyedCells): Interceptor {
  const quota = createQuota(max, cells);
  const refusal = `no more than ${max} ${what} of a caller may run at once`;
  const delay = createRefusalDelay();
  const limit: Interceptor = (call, request, next) => {
    const key = callerKey(call);
    const places: Places = {
      ...{ refusal, delay },
      enter: () => quota.take(key, 1),
      leave: () => quota.release(key, 1),
    };
    return holding(places, call, request, next);
  };
  return what === "calls" ? limit : onlyFor(({ method }) => method.methodKind === "server_streaming", limit);
}

/** @param shared running calls of all workers of the process */
function placesOf(max: number, shared: SharedQuantity = UNSHARED): Places {
  let calls = 0;
  const count = (more: number) => {
    calls += more;
    shared.publish(calls);
  };
  return {
    refusal: `no more than ${max} calls may run at once`,
    enter() {
      count(1);
      if (calls + shared.others <= max) return true;
      count(-1);
      return false;
    },
    leave: () => count(-1),
  };
}

async function holding(places: Places, call: Call, request: OperationRequest, next: Next) {
  if (!places.enter()) {
    await places.delay?.(call);
    const headers = { "retry-after": "1" };
    throw new LanceError("Throttling", places.refusal, { headers, limit: "concurrency" });
  }
  let streams = false;
  try {
    const response = await next(call, request);
    if (!isStream(response)) return response;
    streams = true;
    return held(places, response);
  } finally {
    if (!streams) places.leave();
  }
}

async function* held(places: Places, messages: AsyncIterable<Message>): AsyncIterable<never> {
  try {
    yield* messages as AsyncIterable<never>;
  } finally {
    places.leave();
  }
}
