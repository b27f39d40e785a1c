import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Origin, Rounds } from "../../bench/support/result-file.ts";
import { markdownTable } from "./markdown.ts";

const results = join(import.meta.dirname, "..", "..", "bench", "results", "cores.json");

interface Figures {
  readonly rate: Rounds;
  readonly cpuMicros: Rounds;
}

interface CoresResult {
  readonly origin: Origin;
  readonly work: Readonly<Record<string, Readonly<Record<"1" | "2", Figures>>>>;
  readonly residentMiB: Readonly<Record<"1" | "2", number>>;
}

/** The comparison of one worker with two, as `npm run bench -- cores` has written it. */
export function coresTable(): string {
  const { origin, work, residentMiB } = JSON.parse(readFileSync(results, "utf8")) as CoresResult;
  const rows = Object.entries(work).map(([title, { 1: one, 2: two }]) => [
    title,
    shown(one.rate),
    shown(two.rate),
    `${(two.rate.median / one.rate.median).toFixed(2)} ×`,
    shown(one.cpuMicros),
    shown(two.cpuMicros),
  ]);
  const table = markdownTable(
    ["Calls", "1 worker, /s", "2 workers, /s", "ratio", "1 worker, µs of CPU", "2 workers, µs of CPU"],
    rows,
  );
  const rounds = Object.values(work)[0]?.[1].rate.rounds.length;
  const run = `Medians of ${rounds} rounds, with their range; commit ${origin.commit}, Node ${origin.node}, ${origin.cores} cores of an ${origin.cpu}.`;
  return `${table}\n\n${run} Resident memory: ${residentMiB[1]} MiB and ${residentMiB[2]} MiB.`;
}

function shown({ median, min, max }: Rounds): string {
  return `${text(median)} (${text(min)}–${text(max)})`;
}

function text(value: number): string {
  return value.toLocaleString("en");
}
