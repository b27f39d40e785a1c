import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../namespace/call/call.ts";
import type { Flight } from "../../namespace/call/flight.ts";
import { whileWaiting } from "../../runtime/promises.ts";
import { createOverlappingCheck } from "../dir/concurrency/shared-checks.ts";

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

/** A call that waits for a request to be sent, and what it gets then. A call may ask more than once. */
interface Waiting<T> {
  readonly call: Call;
  readonly answer: PromiseWithResolvers<T>;
}

/** Time after which a request without an answer keeps no later one waiting, in milliseconds. */
const SLOW_MS = 2_000;

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
  let group = new Set<Waiting<T>>();
  let send: ((call: Call) => Flight<T>) | undefined;
  const next = createOverlappingCheck(async () => {
    const all = group;
    group = new Set();
    const patient = mostPatient(all);
    const flight = patient && send?.(patient);
    // All of them wait before any of them can leave, so that the request does not end with the first.
    for (const { call, answer } of all) answer.resolve((flight as Flight<T>).wait(call));
    if (flight !== undefined) await Promise.race([flight.landed, sleep(SLOW_MS, undefined, { ref: false })]);
  });
  return {
    users: 0,
    async ask(call, sendOne) {
      const own = group;
      const waiting = { call, answer: Promise.withResolvers<T>() };
      own.add(waiting);
      send = sendOne;
      void next();
      try {
        return await whileWaiting(waiting.answer.promise, call.signal);
      } finally {
        own.delete(waiting);
      }
    },
  };
}

/** Returns the call that may wait longest, so that the request does not end before any other. */
function mostPatient(all: Iterable<Pick<Waiting<never>, "call">>): Call | undefined {
  let found: Call | undefined;
  for (const { call } of all) if (found === undefined || endOf(call) > endOf(found)) found = call;
  return found;
}

function endOf({ deadline = Number.POSITIVE_INFINITY }: Call): number {
  return deadline;
}
