import { readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { computedSeconds } from "../support/cpu.ts";
import { residentBytes } from "../support/memory.ts";
import { KIND_NAMES, type Kind } from "./calls.ts";
import type { Call } from "./clients.ts";

/** Number of calls, and their durations in milliseconds. */
export interface Latencies {
  readonly calls: number;
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

/** The calls of an interval, and the state of the gateways at its end. */
export interface Sample {
  /** End of the interval, in seconds since the start. */
  readonly seconds: number;
  readonly callsPerSecond: number;
  readonly reads: Latencies;
  readonly writes: Latencies;
  readonly kinds: Readonly<Record<string, Latencies>>;
  /** Computing time since the start of each process, in seconds; of the gateways by their places, NaN for one that is being restarted. */
  readonly computed: { readonly gateways: readonly number[]; readonly clients: number };
  /** Of the gateways by their places; NaN for one that is being restarted. */
  readonly residentMib: readonly number[];
  readonly descriptors: readonly number[];
  /** Files and manifests of tables below the root; NaN for a bucket. */
  readonly files: number;
  readonly manifests: number;
}

const MIB = 2 ** 20;

/** Takes samples. */
export interface Sampler {
  /** Counts a call for the current interval. */
  note(call: Call): void;
  /** Ends the interval. */
  take(pids: readonly number[]): Promise<Sample>;
}

/** Begins the first interval. @param root the directory whose files are counted; undefined for a bucket */
export function startSampler(root: string | undefined): Sampler {
  const begun = performance.now();
  let from = begun;
  let calls: Call[] = [];
  return {
    note: (call) => void calls.push(call),
    async take(pids) {
      const [ended, length] = [calls, performance.now() - from];
      calls = [];
      from += length;
      return {
        seconds: (from - begun) / 1000,
        callsPerSecond: ended.length / (length / 1000),
        reads: latenciesOf(durationsOf(ended, ({ isWrite }) => !isWrite)),
        writes: latenciesOf(durationsOf(ended, ({ isWrite }) => isWrite)),
        kinds: Object.fromEntries(
          KIND_NAMES.map((name) => [name, latenciesOf(durationsOf(ended, (kind) => kind.name === name))]),
        ),
        computed: { gateways: pids.map(computedBy), clients: computedSeconds(process.pid) },
        residentMib: pids.map((pid) => residentBytes(pid) / MIB || Number.NaN),
        descriptors: pids.map(descriptorsOf),
        ...(await countFiles(root)),
      };
    },
  };
}

/** Summarizes durations in milliseconds; the quantiles of none are NaN. */
export function latenciesOf(durations: readonly number[]): Latencies {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  return { calls: sorted.length, p50: at(0.5), p99: at(0.99), most: at(1) };
}

function durationsOf(calls: readonly Call[], isWanted: (kind: Kind) => boolean): number[] {
  return calls.filter(({ kind }) => isWanted(kind)).map(({ ms }) => ms);
}

function computedBy(pid: number): number {
  try {
    return computedSeconds(pid);
  } catch {
    return Number.NaN;
  }
}

function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length || Number.NaN;
  } catch {
    return Number.NaN;
  }
}

async function countFiles(root: string | undefined): Promise<Pick<Sample, "files" | "manifests">> {
  if (root === undefined) return { files: Number.NaN, manifests: Number.NaN };
  const names = await filesBelow(root);
  return { files: names.length, manifests: names.filter((name) => name.endsWith(".manifest")).length };
}

/** Returns the names of all files below a directory; gateways remove directories meanwhile. */
async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const names = entries.map((entry) =>
    entry.isDirectory() ? filesBelow(join(directory, entry.name)) : [entry.name],
  );
  return (await Promise.all(names)).flat();
}
