import type { DescMethod } from "@bufbuild/protobuf";
import type { Call, Protocol } from "../namespace/call.ts";
import type { NoteDecision, UpstreamDecision } from "../namespace/decisions.ts";
import type { CallMetrics, Outcome } from "../pipeline/measure.ts";
import type { CountRefusal } from "../pipeline/refusals.ts";
import { countIn, createCounts } from "./buckets.ts";
import { type Exemplar, exemplarOf } from "./exemplar.ts";

/** A value of a metric; the labels are in the order of its declaration. */
export interface Sample {
  readonly labels: readonly string[];
  readonly value: number;
}

/** A series of a histogram. */
export interface HistogramSample {
  readonly labels: readonly string[];
  /** Number of values in each bucket and in no smaller one; the last bucket has those above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
  /** Last call in each bucket that belongs to a recorded trace. */
  readonly exemplars: readonly (Exemplar | undefined)[];
}

/** Logs of lines that may get lost. */
export type LineLog = "audit" | "access";

/** Counts of the gateway, in a form that is cheap to increment. */
export interface Tallies extends CallMetrics {
  /** Returns the counter of a database's decisions that belong to no call. */
  noteFor(database: string | undefined): NoteDecision;
  /** Counts a request that never became a call. */
  readonly refuse: CountRefusal;
  /** Counts lines that a log lacks. */
  loseLines(log: LineLog, lines: number): void;
  linesLost(log: LineLog): number;
  readonly running: number;
  calls(): Iterable<Sample>;
  refusals(): Iterable<Sample>;
  seconds(): Iterable<HistogramSample>;
  bytes(): Iterable<Sample>;
  decisions(): Iterable<Sample>;
}

interface CallTally {
  readonly outcomes: Map<string | undefined, Map<Outcome, number>>;
  readonly counts: number[];
  readonly exemplars: (Exemplar | undefined)[];
  sum: number;
  bytes: number;
}

/**
 * Creates empty tallies. A call costs a few map lookups: labels become texts only when the metrics are read, while
 * the counters of prom-client check labels and join them to a key for every value.
 */
export function createTallies(): Tallies {
  const methods = new Map<DescMethod, Map<Protocol, CallTally>>();
  const decided = new Map<string, Map<UpstreamDecision, number>>();
  const refused = new Map<string, Map<string, number>>();
  let running = 0;
  const linesLost: Record<LineLog, number> = { audit: 0, access: 0 };

  function tallyOf({ method, protocol }: Call): CallTally {
    const byProtocol = entry(methods, method, () => new Map<Protocol, CallTally>());
    return entry(byProtocol, protocol, createCallTally);
  }

  function decide(database = "", decision: UpstreamDecision): void {
    add(
      entry(decided, database, () => new Map()),
      decision,
    );
  }

  function* each(): Iterable<[DescMethod, Protocol, CallTally]> {
    for (const [method, byProtocol] of methods) {
      for (const [protocol, tally] of byProtocol) yield [method, protocol, tally];
    }
  }

  return {
    began() {
      running += 1;
    },

    ended(call, outcome, seconds, bytes) {
      running -= 1;
      const tally = tallyOf(call);
      add(
        entry(tally.outcomes, call.database, () => new Map()),
        outcome,
      );
      const bucket = countIn(tally.counts, seconds);
      const exemplar = exemplarOf(call, seconds);
      if (exemplar !== undefined) tally.exemplars[bucket] = exemplar;
      tally.sum += seconds;
      tally.bytes += bytes;
      for (const decision of call.decisions) decide(call.database, decision);
    },

    noteFor: (database) => (decision) => decide(database, decision),

    refuse(protocol, code) {
      add(
        entry(refused, protocol, () => new Map()),
        code,
      );
    },

    *refusals() {
      for (const [protocol, counts] of refused) {
        for (const [code, value] of counts) yield { labels: [protocol, code], value };
      }
    },

    loseLines(log, lines) {
      linesLost[log] += lines;
    },

    linesLost: (log) => linesLost[log],

    get running() {
      return running;
    },

    *calls() {
      for (const [{ name }, protocol, { outcomes }] of each()) {
        for (const [database = "", codes] of outcomes) {
          for (const [code, value] of codes) yield { labels: [name, protocol, code, database], value };
        }
      }
    },

    *seconds() {
      for (const [{ name }, protocol, { counts, sum, exemplars }] of each()) {
        yield { labels: [name, protocol], counts, sum, exemplars };
      }
    },

    *bytes() {
      for (const [method, byProtocol] of methods) {
        if (method.methodKind === "unary") continue;
        const direction = method.methodKind === "client_streaming" ? "received" : "sent";
        const value = [...byProtocol.values()].reduce((sum, { bytes }) => sum + bytes, 0);
        yield { labels: [method.name, direction], value };
      }
    },

    *decisions() {
      for (const [database, counts] of decided) {
        for (const [decision, value] of counts) yield { labels: [database, decision], value };
      }
    },
  };
}

function createCallTally(): CallTally {
  return {
    outcomes: new Map(),
    counts: createCounts(),
    exemplars: [],
    sum: 0,
    bytes: 0,
  };
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

function add<K>(map: Map<K, number>, key: K): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}
