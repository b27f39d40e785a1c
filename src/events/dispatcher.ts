import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Agent } from "undici";
import type { ChangeEvent, EventSink } from "../namespace/change-event.ts";
import { createLineWriter, openRotatingFile } from "../observability/log/lines/line-writer.ts";
import { createTrail } from "../observability/log/lines/trail.ts";
import {
  createDeliveryQueue,
  type Delivery,
  type DeliveryQueue,
  type RetryPolicy,
} from "./delivery-queue.ts";
import type { Entry, Journal } from "./journal.ts";
import { type Attempt, send, type Webhook } from "./send.ts";

/** Counts what becomes of events, by the address of the receiver without its query. */
export interface EventTally {
  attempted(webhook: string, outcome: "delivered" | "failed"): void;
  buried(webhook: string): void;
  lost(webhook: string): void;
  waiting(webhook: string, change: 1 | -1): void;
}

/** Options of {@link createDispatcher}. */
export interface DispatcherOptions {
  readonly webhooks: readonly Webhook[];
  readonly journal: Journal;
  readonly deadLetters: DeadLetters;
  readonly agent: Agent;
  readonly retry: RetryPolicy;
  /** Longest time of an attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Most bytes of events that wait; further ones become dead letters. As many are kept that no file of dead letters takes. */
  readonly maxWaitingBytes: number;
  readonly tally: EventTally;
  readonly log: Logger;
  /** Longest time for deliveries at the end, in milliseconds. Default: 5 s. */
  readonly lastCallMs?: number | undefined;
}

/** Delivers events to receivers. */
export interface Dispatcher extends EventSink {
  /** Replaces the receivers. What waits for one that is left out becomes dead letters. */
  replace(webhooks: readonly Webhook[]): void;
  /** Delivers what needs no pause, for a few seconds at most; a later run of the program delivers the rest. */
  close(): Promise<void>;
}

/** Most attempts at the same time for each receiver; the agent has as many connections. */
export const CONCURRENCY = 8;

/** Shortest time between warnings about a receiver, in milliseconds. */
const WARNING_MS = 60_000;

/** A receiver, and the way to it. */
interface Route {
  webhook: Webhook;
  readonly queue: DeliveryQueue;
  /** Events that it has not got. */
  readonly waiting: Map<Delivery, ChangeEvent>;
}

/** Reason of dead letters of a receiver that is left out. */
const LEFT_OUT = "the webhook is not configured any more";

/** Delivers events to each receiver that wants them, those first that an earlier run of the program has left. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { journal, deadLetters, agent, retry, timeoutMs, maxWaitingBytes, tally, log } = options;
  const { lastCallMs = 5_000 } = options;
  const end = new AbortController();
  const routes = new Map(options.webhooks.map((webhook) => [webhook.key, routeTo(webhook)]));
  const dismissals = new Set<Promise<void>>();
  let waitingBytes = 0;
  /** Bytes of the events that were given up and are no dead letters, which the journal keeps. */
  let unburiedBytes = 0;

  function routeTo(first: Webhook): Route {
    const { key, shown } = first;
    const waiting = new Map<Delivery, ChangeEvent>();
    let warnedAt = Number.NEGATIVE_INFINITY;

    function note(attempt: Attempt): void {
      if (end.signal.aborted) return;
      tally.attempted(shown, attempt === "delivered" ? "delivered" : "failed");
      if (attempt === "delivered" || performance.now() - warnedAt < WARNING_MS) return;
      warnedAt = performance.now();
      log.warn({ webhook: shown, reason: attempt.reason }, "a webhook does not take an event");
    }
    const queue = createDeliveryQueue({
      attempt: (delivery) => send(agent, route.webhook, delivery, timeoutMs, end.signal),
      ...{ retry, concurrency: CONCURRENCY, onAttempt: note },
      async onEnd(delivery, attempts, reason) {
        const event = takeOut(route, delivery);
        if (reason !== undefined) await bury(key, shown, event, attempts, reason);
        else await journal.end(event.id, key);
      },
    });
    const route: Route = { webhook: first, queue, waiting };
    return route;
  }

  function takeOut({ webhook, waiting }: Route, delivery: Delivery): ChangeEvent {
    const event = waiting.get(delivery) as ChangeEvent;
    waiting.delete(delivery);
    waitingBytes -= delivery.body.length;
    tally.waiting(webhook.shown, -1);
    return event;
  }

  /** Ends the way to a receiver. */
  async function dismiss(route: Route): Promise<void> {
    const { webhook, queue, waiting } = route;
    await queue.stop();
    // At the end of the gateway, a later run decides.
    if (end.signal.aborted) return;
    for (const delivery of [...waiting.keys()])
      await bury(webhook.key, webhook.shown, takeOut(route, delivery), 0, LEFT_OUT);
  }

  async function bury(
    key: string,
    shown: string,
    event: ChangeEvent,
    attempts: number,
    reason: string,
  ): Promise<void> {
    try {
      await deadLetters.bury({ webhook: shown, reason, attempts, event });
    } catch {
      tally.lost(shown);
      const bytes = JSON.stringify(event).length;
      // The journal, which has it in memory, keeps it for the next run.
      if (unburiedBytes + bytes <= maxWaitingBytes) unburiedBytes += bytes;
      else await journal.end(event.id, key);
      return;
    }
    tally.buried(shown);
    await journal.end(event.id, key);
  }

  async function deliver({ event, to }: Entry): Promise<void> {
    const body = JSON.stringify(event);
    for (const key of to) {
      const route = routes.get(key);
      if (route === undefined) {
        await bury(key, `unknown (${key})`, event, 0, LEFT_OUT);
      } else if (waitingBytes + body.length > maxWaitingBytes) {
        await bury(key, route.webhook.shown, event, 0, "too many events wait");
      } else {
        const delivery = { id: event.id, body, objects: objectsOf(event), since: Date.parse(event.time) };
        waitingBytes += body.length;
        route.waiting.set(delivery, event);
        tally.waiting(route.webhook.shown, 1);
        route.queue.add(delivery);
      }
    }
  }

  const begun = (async () => {
    for (const entry of journal.left) await deliver(entry);
  })();

  return {
    async announce(events) {
      await begun;
      const entries = events.flatMap((event) => {
        const to = [...routes.values()].flatMap(({ webhook }) => (webhook.accepts(event) ? webhook.key : []));
        return to.length === 0 ? [] : [{ event, to }];
      });
      // The journal writes them in this order, and together.
      await Promise.all(entries.map((entry) => journal.add(entry)));
      for (const entry of entries) await deliver(entry);
    },
    replace(webhooks) {
      const former = new Map(routes);
      routes.clear();
      for (const webhook of webhooks) {
        const route = former.get(webhook.key) ?? routeTo(webhook);
        route.webhook = webhook;
        routes.set(webhook.key, route);
        former.delete(webhook.key);
      }
      for (const route of former.values()) {
        const dismissal = dismiss(route).finally(() => dismissals.delete(dismissal));
        dismissals.add(dismissal);
      }
    },
    async close() {
      const last = new AbortController();
      const queues = [...routes.values()].map(({ queue }) => queue.drain());
      const pause = sleep(lastCallMs, undefined, { signal: last.signal }).catch(() => {});
      await Promise.race([Promise.all(queues), pause]);
      last.abort();
      end.abort();
      await Promise.all([...queues, ...dismissals]);
      await agent.destroy();
      await journal.close();
      await deadLetters.close();
    },
  };
}

/** Returns the objects whose events go out in order: the object, and the new name of a renamed one. */
function objectsOf({ data: { database = "", object, to } }: ChangeEvent): readonly string[] {
  return [object, ...(to === undefined ? [] : [to])].map((name) => `${database}\n${name}`);
}

/** An event that is not delivered. */
interface DeadLetter {
  /** Address of the receiver, without its query. */
  readonly webhook: string;
  readonly reason: string;
  readonly attempts: number;
  readonly event: ChangeEvent;
}

/** The file of events that were not delivered, a line of JSON each. */
interface DeadLetters {
  /**
   * Appends a line.
   *
   * @throws LanceError if the system does not take it, which the log says.
   */
  bury(letter: DeadLetter): Promise<void>;
  close(): Promise<void>;
}

const NAME = "file of dead letters";

/** Size at which the file is renamed, in bytes, and the number of renamed files that are kept. */
const MAX_BYTES = 16 * 1024 ** 2;
const KEEP = 10;

/** Opens the file for appending. @throws Error of node:fs */
export async function openDeadLetters(path: string, log: Logger): Promise<DeadLetters> {
  const target = await openRotatingFile({ name: NAME, path, maxBytes: MAX_BYTES, keep: KEEP, log });
  const writer = createLineWriter(target);
  const trail = createTrail({ name: NAME, writer, required: true, log, onLost() {} });
  return {
    bury: (letter) => trail.write(JSON.stringify({ time: new Date().toISOString(), ...letter })),
    close: () => trail.close(),
  };
}
