import type { Call } from "../../namespace/call.ts";
import type { NoteDecision } from "../../namespace/decisions.ts";
import { whileWaiting } from "../upstream-identity/while-waiting.ts";

/** One call of the upstream for all who wait for the same answer. It ends early when the last of them has left. */
export interface Flight<T> {
  /** It takes none of the room for answers. */
  readonly bytes: 0;
  /** Whether it may take as long as a call can wait. */
  lasts(call: Call): boolean;
  /** The answer, or what the call is aborted with. */
  wait(call: Call): Promise<T>;
}

/** What is told of a flight. */
export interface FlightEvents {
  /** Nobody waits any more. */
  onAbandoned(): void;
  /** What is decided when the call that it began with has left. */
  readonly noteDecision: NoteDecision;
}

/**
 * Begins a flight.
 *
 * @param call whose deadline and request it takes
 * @param fetch asks the upstream, in a call with a signal of its own
 * @param events what is told of it
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
  const own: Call = {
    ...call,
    signal: controller.signal,
    responseHeaders: {},
    note: (decision) => (call.signal.aborted ? noteDecision(decision) : call.note(decision)),
  };
  const result = fetch(own).finally(() => {
    finished = true;
  });
  // Whoever waits is told; nobody may be left.
  result.catch(() => {});
  return {
    bytes: 0,
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
