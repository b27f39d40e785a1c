import { whileWaiting } from "../../runtime/promises.ts";
import type { NoteDecision } from "../figures.ts";
import { type Call, copyCall, endingOf } from "./call.ts";

/**
 * A call of the upstream, shared by all callers that wait for the answer. It ends early when the last of them has
 * left.
 */
export interface Flight<T> {
  /** A flight takes none of the memory for answers. */
  readonly bytes: 0;
  /** Resolves when the answer has arrived or the request has failed. */
  readonly landed: Promise<void>;
  /** Whether the flight has at least as much time as a call. */
  lasts(call: Call): boolean;
  /** Returns the answer, or throws the reason of the call's abort. */
  wait(call: Call): Promise<T>;
}

/** Events of a flight. */
export interface FlightEvents {
  /** No caller waits any longer. */
  onAbandoned(): void;
  /** Counts decisions after the first caller has left. */
  readonly noteDecision: NoteDecision;
}

/**
 * Starts a flight.
 *
 * @param call the call whose deadline and request it takes
 * @param fetch asks the upstream, in a call with a signal of its own
 */
export function startFlight<T>(
  call: Call,
  fetch: (call: Call) => Promise<T>,
  { onAbandoned, noteDecision }: FlightEvents,
): Flight<T> {
  const controller = new AbortController();
  let waiting = 0;
  let finished = false;
  const { deadline = Number.POSITIVE_INFINITY } = call;
  const ending = endingOf(call);
  const own = copyCall(call, {
    signal: controller.signal,
    responseHeaders: {},
    note: (decision) => (ending.aborted ? noteDecision(decision) : call.note(decision)),
  });
  const result = fetch(own).finally(() => {
    finished = true;
  });
  return {
    bytes: 0,
    // The waiting callers get the failure; there may be none left.
    landed: result.then(
      () => {},
      () => {},
    ),
    lasts: (other) => (other.deadline ?? Number.POSITIVE_INFINITY) <= deadline,
    async wait({ signal }) {
      waiting += 1;
      try {
        return await whileWaiting(result, signal);
      } finally {
        waiting -= 1;
        if (waiting === 0 && !finished) {
          onAbandoned();
          controller.abort(signal.reason);
        }
      }
    },
  };
}
