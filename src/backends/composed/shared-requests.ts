import type { Call } from "../../namespace/call/call.ts";
import type { Flight } from "../../namespace/call/flight.ts";
import { whileWaiting } from "../../runtime/time/while-waiting.ts";
import { createOverlappingCheck } from "../dir/concurrency/overlapping-check.ts";

/** Requests to an upstream, each shared by calls that have come before it is sent. */
export interface SharedRequests<T> {
  /**
   * Returns the answer to a request that is sent after the call has come.
   *
   * @param key equal for calls that one request can answer
   * @param send sends the request in the name of a call
   */
  ask(key: string, call: Call, send: (call: Call) => Flight<T>): Promise<T>;
}

/** Calls that wait for the same request to be sent, and what each of them gets then. */
type Group<T> = Map<Call, PromiseWithResolvers<T>>;

/** The requests of a key. */
interface Sender<T> {
  users: number;
  ask(call: Call, send: (call: Call) => Flight<T>): Promise<T>;
}

/** Creates the requests, which overlap as the checks of {@link createOverlappingCheck} do. */
export function createSharedRequests<T>(): SharedRequests<T> {
  const senders = new Map<string, Sender<T>>();
  return {
    async ask(key, call, send) {
      const sender = senders.get(key) ?? createSender<T>();
      senders.set(key, sender);
      sender.users += 1;
      try {
        return await sender.ask(call, send);
      } finally {
        sender.users -= 1;
        if (sender.users === 0) senders.delete(key);
      }
    },
  };
}

function createSender<T>(): Sender<T> {
  let group: Group<T> = new Map();
  let send: ((call: Call) => Flight<T>) | undefined;
  const next = createOverlappingCheck(async () => {
    const calls = group;
    group = new Map();
    const patient = mostPatient(calls.keys());
    const flight = patient && send?.(patient);
    // All of them wait before any of them can leave, so that the request does not end with the first.
    for (const [call, { resolve }] of calls) resolve((flight as Flight<T>).wait(call));
    await flight?.landed;
  });
  return {
    users: 0,
    async ask(call, sendOne) {
      const own = group;
      const answer = Promise.withResolvers<T>();
      own.set(call, answer);
      send = sendOne;
      void next();
      try {
        return await whileWaiting(answer.promise, call.signal);
      } finally {
        own.delete(call);
      }
    },
  };
}

/** Returns the call that may wait longest, so that the request does not end before any other. */
function mostPatient(calls: Iterable<Call>): Call | undefined {
  let found: Call | undefined;
  for (const call of calls) if (found === undefined || endOf(call) > endOf(found)) found = call;
  return found;
}

function endOf({ deadline = Number.POSITIVE_INFINITY }: Call): number {
  return deadline;
}
