import { backoffMs } from "../runtime/clocks.ts";
import type { Attempt, Letter } from "./send.ts";

/** A letter to a receiver. */
export interface Delivery extends Letter {
  /** Objects that it is about; letters about a common object go out one after another. */
  readonly objects: readonly string[];
  /** When the change was announced, in epoch milliseconds. */
  readonly since: number;
}

/** When failed attempts are repeated. */
export interface RetryPolicy {
  /** Pause after the first failure, in milliseconds; it doubles. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
  /** Time since the announcement after which a failed attempt is the last one, in milliseconds. */
  readonly totalMs: number;
}

/** Options of {@link createDeliveryQueue}. */
export interface DeliveryQueueOptions {
  attempt(delivery: Delivery): Promise<Attempt>;
  readonly retry: RetryPolicy;
  /** Most attempts at the same time. */
  readonly concurrency: number;
  /** Called after each attempt. */
  onAttempt(attempt: Attempt): void;
  /** Called when a delivery is over: without a reason it was delivered. The next of its objects follows. */
  onEnd(delivery: Delivery, attempts: number, reason?: string): Promise<void>;
}

/** Letters on their way to a receiver. */
export interface DeliveryQueue {
  add(delivery: Delivery): void;
  /** Repeats nothing from now on; resolves when everything is delivered that waits for no pause. */
  drain(): Promise<void>;
  /** Attempts nothing from now on; resolves when the running attempts have ended. */
  stop(): Promise<void>;
}

interface Waiting {
  readonly delivery: Delivery;
  readonly followers: Waiting[];
  /** Number of earlier letters about its objects that are in flight. */
  before: number;
  attempts: number;
}

/**
 * Creates an empty queue. Letters about an object go out in the order in which they were added, the next one after the end of the
 * one before; a letter that fails holds up no others.
 *
 * @param random Default: Math.random.
 */
export function createDeliveryQueue(options: DeliveryQueueOptions, random = Math.random): DeliveryQueue {
  const { retry, concurrency } = options;
  /** The last letter about each object. */
  const last = new Map<string, Waiting>();
  const ready: Waiting[] = [];
  const pauses = new Set<NodeJS.Timeout>();
  const idle = Promise.withResolvers<void>();
  let running = 0;
  let isDraining = false;
  let isStopped = false;

  function pump(): void {
    while (!isStopped && running < concurrency) {
      const next = ready.shift();
      if (next === undefined) break;
      running += 1;
      void run(next).finally(() => {
        running -= 1;
        pump();
      });
    }
    if (isDraining && running === 0) idle.resolve();
  }

  async function run(waiting: Waiting): Promise<void> {
    const { delivery } = waiting;
    waiting.attempts += 1;
    const attempt = await options.attempt(delivery);
    options.onAttempt(attempt);
    if (attempt === "delivered") return end(waiting);
    // A later run of the program repeats it.
    if (isDraining) return;
    const isLate = Date.now() - delivery.since >= retry.totalMs;
    if (attempt.isFinal === true || isLate) return end(waiting, attempt.reason);
    pause(waiting, attempt.pauseMs ?? 0);
  }

  /** Attempts a delivery again after a pause; the jitter spreads letters that failed together. */
  function pause(waiting: Waiting, wantedMs: number): void {
    const { firstPauseMs, maxPauseMs } = retry;
    const longest = backoffMs(waiting.attempts - 1, firstPauseMs, maxPauseMs);
    const ms = Math.max(longest * (0.5 + random() / 2), Math.min(wantedMs, maxPauseMs));
    const timer = setTimeout(() => {
      pauses.delete(timer);
      ready.push(waiting);
      pump();
    }, ms);
    timer.unref();
    pauses.add(timer);
  }

  async function end(waiting: Waiting, reason?: string): Promise<void> {
    const { delivery, attempts, followers } = waiting;
    await options.onEnd(delivery, attempts, reason);
    for (const object of delivery.objects) {
      if (last.get(object) === waiting) last.delete(object);
    }
    for (const follower of followers) {
      follower.before -= 1;
      if (follower.before === 0) ready.push(follower);
    }
  }

  function drain(): Promise<void> {
    isDraining = true;
    for (const timer of pauses) clearTimeout(timer);
    pump();
    return idle.promise;
  }

  return {
    add(delivery) {
      const earlier = new Set(delivery.objects.flatMap((object) => last.get(object) ?? []));
      const waiting: Waiting = { delivery, followers: [], before: earlier.size, attempts: 0 };
      for (const each of earlier) each.followers.push(waiting);
      for (const object of delivery.objects) last.set(object, waiting);
      if (waiting.before > 0) return;
      ready.push(waiting);
      pump();
    },
    drain,
    stop() {
      isStopped = true;
      return drain();
    },
  };
}
