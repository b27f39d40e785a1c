import type { EventTallies } from "./background-tallies.ts";
import { METRICS, type MetricDeclaration } from "./declarations.ts";
import {
  aggregate,
  growing,
  type ProcessSnapshot,
  readWatched,
  type Snapshot,
  watchProcess,
} from "./snapshots.ts";

/** A worker whose metrics are read. */
export interface MeasuredWorker {
  /** Returns its metrics; undefined if it does not answer. */
  readMetrics(): Promise<Snapshot | undefined>;
}

/** Reason why a worker was replaced. */
export type ReplacementReason = "ended" | "blocked";

/** Metrics of the workers of a process. */
export interface CrewMetrics {
  /** Reads the metrics of all workers, and those of the process. */
  gather(): Promise<ProcessSnapshot>;
  /** Keeps the last counts of a worker that has ended: counters of the process must not decrease. */
  retire(worker: MeasuredWorker): Promise<void>;
  countReplacement(reason: ReplacementReason): void;
}

/** Creates the metrics of workers, given the workers that serve now, and the counts of events, which the process has once. */
export function createCrewMetrics(
  serving: () => readonly MeasuredWorker[],
  events: EventTallies,
): CrewMetrics {
  const last = new Map<MeasuredWorker, Snapshot>();
  const replacements = new Map<ReplacementReason, number>([
    ["ended", 0],
    ["blocked", 0],
  ]);
  /** Last counts of workers that have ended, some of them already added up. */
  let retired: readonly Snapshot[] = [];
  let adding: Promise<void> = Promise.resolve();
  // The computing time of the process counts from here on.
  watchProcess().catch(() => {});

  async function read(worker: MeasuredWorker): Promise<void> {
    const metrics = await worker.readMetrics();
    // A worker that has ended meanwhile has retired with what it had before.
    if (metrics !== undefined && serving().includes(worker)) last.set(worker, metrics);
  }
  async function addUp(): Promise<void> {
    const parts = retired;
    const { library } = await watchProcess();
    const sum = await aggregate(library, parts);
    // Others may have retired meanwhile.
    retired = [sum, ...retired.slice(parts.length)];
  }
  function ownMetrics(): Snapshot {
    const counts = [...replacements].map(([reason, value]) => ({ labels: { reason }, value }));
    const workers = [{ labels: {}, value: serving().length }];
    const ofEvents = events.samples().map(([declared, samples]) => ({
      ...declared,
      values: [...samples()].map(({ labels, value }) => ({ labels: named(declared, labels), value })),
    }));
    return [
      { ...METRICS.workers, values: workers },
      { ...METRICS.replacements, values: counts },
      ...ofEvents,
    ];
  }
  return {
    async gather() {
      await Promise.all(serving().map(read));
      // In one step, so that each worker counts once, whether it serves or has retired.
      const workers = [...last.values(), ...retired];
      return { workers, process: [...ownMetrics(), ...(await readWatched("process"))] };
    },
    async retire(worker) {
      const metrics = last.get(worker);
      last.delete(worker);
      if (metrics === undefined) return;
      retired = [...retired, growing(metrics)];
      adding = adding.catch(() => {}).then(addUp);
      await adding;
    },
    countReplacement(reason) {
      replacements.set(reason, (replacements.get(reason) ?? 0) + 1);
    },
  };
}

function named({ labels: names }: MetricDeclaration, values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
}
