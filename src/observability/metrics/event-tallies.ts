import { METRICS, type MetricDeclaration } from "./declarations.ts";
import type { Sample } from "./tallies.ts";

/** Counts of what becomes of events; receivers are named by their addresses, without queries. */
export interface EventTallies {
  attempted(webhook: string, outcome: "delivered" | "failed"): void;
  buried(webhook: string): void;
  lost(webhook: string): void;
  waiting(webhook: string, change: 1 | -1): void;
  /** Returns the metrics and their values. */
  samples(): readonly (readonly [MetricDeclaration, () => Iterable<Sample>])[];
}

/** Creates empty tallies. */
export function createEventTallies(): EventTallies {
  const attempts = createCounter();
  const buried = createCounter();
  const lost = createCounter();
  const waiting = createCounter();
  return {
    attempted: (webhook, outcome) => attempts.add([webhook, outcome], 1),
    buried: (webhook) => buried.add([webhook], 1),
    lost: (webhook) => lost.add([webhook], 1),
    waiting: (webhook, change) => waiting.add([webhook], change),
    samples: () => [
      [METRICS.eventAttempts, attempts.samples],
      [METRICS.eventsWaiting, waiting.samples],
      [METRICS.deadLetters, buried.samples],
      [METRICS.eventsLost, lost.samples],
    ],
  };
}

function createCounter() {
  const counts = new Map<string, { readonly labels: readonly string[]; value: number }>();
  return {
    add(labels: readonly string[], change: number): void {
      const key = labels.join("\n");
      const count = counts.get(key) ?? { labels, value: 0 };
      count.value += change;
      counts.set(key, count);
    },
    samples: (): Iterable<Sample> => counts.values(),
  };
}
