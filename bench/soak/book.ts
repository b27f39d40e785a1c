import { KIND_NAMES } from "./calls.ts";
import type { Call } from "./clients.ts";
import { type Latencies, latenciesOf } from "./samples.ts";

/** Counts and durations of calls. */
export interface Summary extends Latencies {
  readonly wrong: number;
  readonly failed: number;
}

/** Everything that is kept of all calls. */
export interface CallBook {
  note(call: Call): void;
  total(): Summary;
  byKind(): Readonly<Record<string, Summary>>;
  byProtocol(): Readonly<Record<string, Summary>>;
}

/** Reasons that are printed; further ones are only counted. */
const SHOWN_REASONS = 10;

/** Creates a book without calls. */
export function createCallBook(protocols: readonly string[]): CallBook {
  const total = createPage();
  const [byKind, byProtocol] = [createPages(KIND_NAMES), createPages(protocols)];
  let shown = 0;
  return {
    note(call) {
      for (const page of [total, byKind.get(call.kind.name), byProtocol.get(call.protocol)]) page?.note(call);
      if (call.outcome === "right" || shown++ >= SHOWN_REASONS) return;
      console.error(`${call.protocol}, ${call.kind.name}: ${call.outcome}: ${call.reason}`);
    },
    total: () => total.sum(),
    byKind: () => sumsOf(byKind),
    byProtocol: () => sumsOf(byProtocol),
  };
}

interface Page {
  note(call: Call): void;
  sum(): Summary;
}

function createPage(): Page {
  const durations: number[] = [];
  const counts = { right: 0, wrong: 0, failed: 0 };
  return {
    note({ ms, outcome }) {
      durations.push(ms);
      counts[outcome] += 1;
    },
    sum: () => ({ ...latenciesOf(durations), wrong: counts.wrong, failed: counts.failed }),
  };
}

function createPages(names: readonly string[]): ReadonlyMap<string, Page> {
  return new Map(names.map((name) => [name, createPage()]));
}

function sumsOf(pages: ReadonlyMap<string, Page>): Readonly<Record<string, Summary>> {
  return Object.fromEntries([...pages].map(([name, page]) => [name, page.sum()]));
}
