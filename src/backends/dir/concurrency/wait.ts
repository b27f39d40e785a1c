import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";

/**
 * Waits for engine work, but not beyond the end of the call. The engine cannot be stopped, so the work continues
 * until its next result; `dispose` gets a late result.
 *
 * @throws LanceError Cancelled, or the signal's own reason
 */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  dispose?: (late: T) => void,
): Promise<T> {
  if (!signal.aborted) {
    const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
    const onAbort = () => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const first = await Promise.race([work.then((value) => ({ value })), aborted]);
      if (first !== undefined) return first.value;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
  work.then(dispose, () => {});
  throw cancellationOf(signal);
}

/** Returns the error of a call whose signal has aborted. */
export function cancellationOf({ reason }: AbortSignal): LanceError {
  return reason instanceof LanceError ? reason : new LanceError("Cancelled", "the call was cancelled");
}

/** Longest timeout that the engine accepts, in milliseconds. */
const MAX_TIMEOUT_MS = 2 ** 32 - 1;

/**
 * Returns the timeout of engine work, in milliseconds, at least 1: the rest of the call's deadline, or the
 * operation's own limit if that is shorter; undefined without either.
 */
export function timeLimit({ deadline }: Call, own = Number.POSITIVE_INFINITY): number | undefined {
  const left = deadline === undefined ? own : Math.min(own, deadline - Date.now());
  return left === Number.POSITIVE_INFINITY
    ? undefined
    : Math.min(Math.max(1, Math.ceil(left)), MAX_TIMEOUT_MS);
}
