import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import { type SharedQuantity, UNSHARED } from "../namespace/sharing.ts";
import { type Databases, databaseOf } from "./databases.ts";
import { type Interceptor, isStream, type Next, type OperationRequest } from "./interceptor.ts";

/** Running calls of a database. */
interface Running {
  readonly max: number;
  /** Calls of all workers of the process. */
  readonly shared: SharedQuantity;
  calls: number;
}

/**
 * Bounds the concurrent calls of each database; it refuses the next call with Throttling. A download runs until its
 * reader has finished or left the stream.
 */
export function limitConcurrency(databases: Databases): Interceptor {
  const limited = [...new Set(databases.values())].flatMap((database) => {
    const { calls: shared = UNSHARED, limits } = database;
    const { maxConcurrentCalls: max } = limits;
    return max === undefined ? [] : [[database, { max, shared, calls: 0 }] as const];
  });
  const running = new Map<unknown, Running>(limited);
  return (call, request, next) => {
    const database = running.get(databaseOf(databases, call));
    return database === undefined ? next(call, request) : run(database, call, request, next);
  };
}

async function run(running: Running, call: Call, request: OperationRequest, next: Next) {
  count(running, 1);
  if (running.calls + running.shared.others > running.max) {
    count(running, -1);
    const message = `no more than ${running.max} calls may run at once`;
    throw new LanceError("Throttling", message, { headers: { "retry-after": "1" } });
  }
  let streams = false;
  try {
    const response = await next(call, request);
    if (!isStream(response)) return response;
    streams = true;
    return counted(running, response);
  } finally {
    if (!streams) count(running, -1);
  }
}

function count(running: Running, calls: number): void {
  running.calls += calls;
  running.shared.publish(running.calls);
}

async function* counted(running: Running, messages: AsyncIterable<Message>): AsyncIterable<never> {
  try {
    yield* messages as AsyncIterable<never>;
  } finally {
    count(running, -1);
  }
}
