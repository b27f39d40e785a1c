import type { DescMethod } from "@bufbuild/protobuf";
import type { Call, Protocol } from "../../namespace/call/call.ts";
import { parseTraceParent } from "../../namespace/call/headers.ts";
import type { LimitName } from "../../namespace/errors.ts";
import { type NoteDecision, SECONDS_BOUNDS, type UpstreamDecision } from "../../namespace/figures.ts";
import type { CallMetrics, Outcome } from "../../pipeline/records/observe.ts";
import type { CountRefusal } from "../../pipeline/records/refusals.ts";

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

type CredentialOutcome = "accepted" | "refused";

/** Logs of lines that may get lost. */
export type LineLog = "audit" | "access";

/** Counts of the gateway, in a form that is cheap to increment. */
export interface Tallies extends CallMetrics {
  /** Returns the counter of a database's decisions that belong to no call. */
  noteFor(database: string | undefined): NoteDecision;
  /** Counts a request that never became a call. */
  readonly refuse: CountRefusal;
  /** Calls that met a limit. */
  limited(): Iterable<Sample>;
  /** Credentials of calls, by the way in which they prove a caller. */
  credentials(): Iterable<Sample>;
  /** Counts a decision of a policy. */
  decidePolicy(isAllowed: boolean): void;
  policyDecisions(): Iterable<Sample>;
  /** Counts lines that a log lacks. */
  loseLines(log: LineLog, lines: number): void;
  linesLost(log: LineLog): number;
  /** Counts a request to the server of shared rates that failed. */
  failSharedRate(): void;
  readonly sharedRateFailures: number;
  readonly running: number;
  calls(): Iterable<Sample>;
  refusals(): Iterable<Sample>;
  seconds(): Iterable<HistogramSample>;
  bytes(): Iterable<Sample>;
  decisions(): Iterable<Sample>;
}

interface CallTally {
  readonly outcomes: Map<Outcome, number>;
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
  const methods = new Map<DescMethod, Map<Protocol, Map<string | undefined, CallTally>>>();
  const decided = new Map<string, Map<UpstreamDecision, number>>();
  const refused = new Map<string, Map<string, number>>();
  let running = 0;
  const limited = new Map<LimitName, number>();
  const credentials = new Map<string, Record<CredentialOutcome, number>>();
  const policy = { allow: 0, deny: 0 };
  const linesLost: Record<LineLog, number> = { audit: 0, access: 0 };
  let sharedRateFailures = 0;

  function tallyOf({ method, protocol, database }: Call): CallTally {
    const byProtocol = entry(methods, method, () => new Map<Protocol, Map<string | undefined, CallTally>>());
    return entry(
      entry(byProtocol, protocol, () => new Map<string | undefined, CallTally>()),
      database,
      createCallTally,
    );
  }

  /** A caller that has proved who it is did so in some way; a refused credential has none. */
  function countCredential({ principal }: Call, outcome: Outcome): void {
    if (principal === undefined && outcome !== "Unauthenticated") return;
    const counts = entry(credentials, principal?.by ?? "", () => ({ accepted: 0, refused: 0 }));
    counts[principal === undefined ? "refused" : "accepted"] += 1;
  }

  function decide(database = "", decision: UpstreamDecision): void {
    add(
      entry(decided, database, () => new Map()),
      decision,
    );
  }

  function* each(): Iterable<[DescMethod, Protocol, string, CallTally]> {
    for (const [method, byProtocol] of methods) {
      for (const [protocol, byDatabase] of byProtocol) {
        for (const [database = "", tally] of byDatabase) yield [method, protocol, database, tally];
      }
    }
  }

  return {
    began() {
      running += 1;
    },

    ended(call, outcome, seconds, bytes, limit) {
      running -= 1;
      const tally = tallyOf(call);
      add(tally.outcomes, outcome);
      if (limit !== undefined) add(limited, limit);
      countCredential(call, outcome);
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

    *limited() {
      for (const [limit, value] of limited) yield { labels: [limit], value };
    },

    *credentials() {
      for (const [way, counts] of credentials) {
        for (const [outcome, value] of Object.entries(counts)) {
          if (value > 0) yield { labels: [way, outcome], value };
        }
      }
    },

    decidePolicy(isAllowed) {
      policy[isAllowed ? "allow" : "deny"] += 1;
    },

    *policyDecisions() {
      for (const [decision, value] of Object.entries(policy)) yield { labels: [decision], value };
    },

    loseLines(log, lines) {
      linesLost[log] += lines;
    },

    linesLost: (log) => linesLost[log],

    failSharedRate() {
      sharedRateFailures += 1;
    },

    get sharedRateFailures() {
      return sharedRateFailures;
    },

    get running() {
      return running;
    },

    *calls() {
      for (const [{ name }, protocol, database, { outcomes }] of each()) {
        for (const [code, value] of outcomes) yield { labels: [name, protocol, code, database], value };
      }
    },

    *seconds() {
      for (const [{ name }, protocol, database, { counts, sum, exemplars }] of each()) {
        yield { labels: [name, protocol, database], counts, sum, exemplars };
      }
    },

    *bytes() {
      const sums = new Map<DescMethod, number>();
      for (const [method, , , { bytes }] of each()) {
        if (method.methodKind !== "unary") sums.set(method, (sums.get(method) ?? 0) + bytes);
      }
      for (const [{ name, methodKind }, value] of sums)
        yield { labels: [name, methodKind === "client_streaming" ? "received" : "sent"], value };
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

/** Creates the counts of a histogram of seconds, all zero; the last one is for values above all bounds. */
export function createCounts(): number[] {
  return [...SECONDS_BOUNDS.map(() => 0), 0];
}

/** Counts a value, and returns its bucket. Most values are in the first buckets. */
export function countIn(counts: number[], seconds: number): number {
  let bucket = 0;
  while (bucket < SECONDS_BOUNDS.length && seconds > (SECONDS_BOUNDS[bucket] as number)) bucket += 1;
  counts[bucket] = (counts[bucket] as number) + 1;
  return bucket;
}

/** A call that leads from a metric to its trace. */
export interface Exemplar {
  readonly labelSet: { readonly trace_id: string };
  /** In the unit of the metric. */
  readonly value: number;
  /** In seconds since 1970. */
  readonly timestamp: number;
}

/** Returns the exemplar of a call; undefined unless its client records the trace. */
function exemplarOf({ headers }: Call, value: number): Exemplar | undefined {
  const parent = parseTraceParent(headers["traceparent"]);
  if (parent?.isSampled !== true) return undefined;
  return { labelSet: { trace_id: parent.traceId }, value, timestamp: Date.now() / 1000 };
}
