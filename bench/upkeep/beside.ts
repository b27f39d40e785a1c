import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startGateway } from "../support/process.ts";
import { createDraw, createTable, READS, type Work, WRITES } from "./work.ts";

/** A span of time, in milliseconds of `performance.now`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Calls of a kind while upkeep worked on the table, and while it did not. */
export interface Beside {
  readonly kind: "reads" | "writes";
  readonly quiet: Latencies;
  readonly beside: Latencies;
}

/** Times of calls, in milliseconds. */
export interface Latencies {
  readonly calls: number;
  readonly p50: number;
  readonly p99: number;
}

/** Clients that read and write, and their pauses, in milliseconds: the machine has time left. */
const READERS = 4;
const READ_PAUSE_MS = 15;
const WRITERS = 2;
const WRITE_PAUSE_MS = 150;

/** Interval of the looks at the metrics, in milliseconds; a run is known that much later. */
const LOOK_MS = 100;

/** Reads and writes a table for some seconds, and compares the calls beside the runs of upkeep with the others. */
export async function measureBeside(seconds: number): Promise<{ runs: number; kinds: Beside[] }> {
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateway = await startGateway("--root", root);
  try {
    await createTable(gateway.port);
    const until = performance.now() + seconds * 1000;
    const reads: Span[] = [];
    const writes: Span[] = [];
    const client = async (kinds: readonly Work[], pauseMs: number, seed: number, spans: Span[]) => {
      const draw = createDraw(seed);
      while (performance.now() < until) {
        const from = performance.now();
        await (kinds[draw(kinds.length)] as Work).run(gateway.port, draw);
        spans.push({ from, to: performance.now() });
        await sleep(pauseMs);
      }
    };
    const [runs] = await Promise.all([
      watchRuns(gateway.port, until),
      ...Array.from({ length: READERS }, (_, at) => client(READS, READ_PAUSE_MS, at + 1, reads)),
      ...Array.from({ length: WRITERS }, (_, at) => client(WRITES, WRITE_PAUSE_MS, at + 91, writes)),
    ]);
    const compare = (kind: Beside["kind"], spans: readonly Span[]): Beside => {
      const isBeside = ({ from, to }: Span) => runs.some((run) => from < run.to && to > run.from);
      const [beside, quiet] = [spans.filter(isBeside), spans.filter((span) => !isBeside(span))];
      return { kind, quiet: latenciesOf(quiet), beside: latenciesOf(beside) };
    };
    return { runs: runs.length, kinds: [compare("reads", reads), compare("writes", writes)] };
  } finally {
    await gateway.stop();
    await rm(root, { recursive: true, force: true });
  }
}

/** Watches the runs of upkeep by their number and total duration in the metrics. */
async function watchRuns(port: number, until: number): Promise<Span[]> {
  const runs: Span[] = [];
  let last = await readRuns(port);
  while (performance.now() < until) {
    await sleep(LOOK_MS);
    const now = await readRuns(port);
    const to = performance.now();
    if (now.count > last.count) runs.push({ from: to - LOOK_MS - (now.seconds - last.seconds) * 1000, to });
    last = now;
  }
  return runs;
}

async function readRuns(port: number): Promise<{ count: number; seconds: number }> {
  const read = await readMetrics(port);
  return {
    count: read(/^lance_gateway_upkeep_seconds_count/),
    seconds: read(/^lance_gateway_upkeep_seconds_sum/),
  };
}

/** Returns a function that sums up the samples whose lines match a pattern. */
export async function readMetrics(port: number): Promise<(pattern: RegExp) => number> {
  const lines = (await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).split("\n");
  return (pattern) =>
    lines.filter((line) => pattern.test(line)).reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Sums up the times of calls. */
export function latenciesOf(spans: readonly Span[]): Latencies {
  const times = spans.map(({ from, to }) => to - from).sort((a, b) => a - b);
  const at = (part: number) => times[Math.ceil(times.length * part) - 1] ?? Number.NaN;
  return { calls: times.length, p50: at(0.5), p99: at(0.99) };
}
