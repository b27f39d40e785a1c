/** Counters of the gateway at a time. */
export interface Reading {
  /** In seconds. */
  readonly at: number;
  readonly samples: readonly Sample[];
}

/** What happened between two readings. */
export interface Activity {
  /** End of the interval, in seconds. */
  readonly at: number;
  readonly callsPerSecond: number;
  readonly errorsPerSecond: number;
  /** In seconds; undefined without calls. */
  readonly median: number | undefined;
  readonly slowest1Percent: number | undefined;
  /** Calls that were running at the end. */
  readonly running: number;
}

/** Codes of calls that ended as their callers asked. */
const NO_ERRORS: ReadonlySet<string> = new Set(["OK", "Cancelled"]);

/** Returns what happened between two readings. Counters that shrank began anew in between. */
export function activityBetween(before: Reading, after: Reading): Activity {
  const seconds = after.at - before.at;
  const rate = (matches: (sample: Sample) => boolean) => {
    const grown = sum(after, matches) - sum(before, matches);
    return seconds > 0 ? Math.max(grown, 0) / seconds : 0;
  };
  const isCall = ({ name }: Sample) => name === "lance_gateway_calls_total";
  const isError = (sample: Sample) => isCall(sample) && !NO_ERRORS.has(sample.labels["code"] ?? "");
  const buckets = grownBuckets(before, after);
  return {
    at: after.at,
    callsPerSecond: rate(isCall),
    errorsPerSecond: rate(isError),
    median: quantile(buckets, 0.5),
    slowest1Percent: quantile(buckets, 0.99),
    running: sum(after, ({ name }) => name === "lance_gateway_calls_running"),
  };
}

function sum({ samples }: Reading, matches: (sample: Sample) => boolean): number {
  return samples.reduce((total, sample) => (matches(sample) ? total + sample.value : total), 0);
}

/** Calls up to a duration, by that duration in seconds. */
type Buckets = readonly (readonly [bound: number, calls: number])[];

function grownBuckets(before: Reading, after: Reading): Buckets {
  const [old, now] = [before, after].map(bucketsOf) as [Map<number, number>, Map<number, number>];
  const grown = [...now].map(([bound, calls]) => [bound, calls - (old.get(bound) ?? 0)] as const);
  return grown.sort(([a], [b]) => a - b);
}

function bucketsOf({ samples }: Reading): Map<number, number> {
  const buckets = new Map<number, number>();
  for (const { name, labels, value } of samples) {
    if (name !== "lance_gateway_call_seconds_bucket") continue;
    const bound = labels["le"] === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels["le"]);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

/** Returns the duration that a part of the calls did not exceed, between the bounds of its bucket. */
function quantile(buckets: Buckets, part: number): number | undefined {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = part * total;
  let [low, below] = [0, 0];
  for (const [bound, calls] of buckets) {
    if (calls >= rank) {
      if (bound === Number.POSITIVE_INFINITY) return low;
      return low + ((bound - low) * (rank - below)) / (calls - below);
    }
    [low, below] = [bound, calls];
  }
  return low;
}

/** A line of the text format of Prometheus. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([\w:]+)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

/** Reads metrics in the text format of Prometheus. Lines of another form are left out. */
export function parseMetrics(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const found = LINE.exec(line);
    if (found === null) return [];
    const [, name = "", labels = "", value = ""] = found;
    const pairs = Array.from(labels.matchAll(LABEL), ([, label = "", content = ""]) => [
      label,
      content.replaceAll(/\\[n"\\]/g, (found) => ESCAPES[found] ?? found),
    ]);
    return [{ name, labels: Object.fromEntries(pairs), value: value === "+Inf" ? Infinity : Number(value) }];
  });
}
