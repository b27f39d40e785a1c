import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { numberText, originText, readResult, shown } from "./rounds.ts";

interface Figures {
  readonly rate: Rounds;
  readonly cpuMicros: Rounds;
  readonly generatorMicros: Rounds;
}

interface CoresResult {
  readonly work: Readonly<Record<string, Readonly<Record<"1" | "2", Figures>>>>;
  readonly residentMiB: Readonly<Record<"1" | "2", number>>;
}

/** The comparison of one worker with two, as `npm run bench -- cores` has written it. */
export function coresTable(): string {
  const { origin, work, residentMiB } = readResult<CoresResult>("cores");
  const rows = Object.entries(work).map(([title, { 1: one, 2: two }]) => [
    title,
    shown(one.rate),
    shown(two.rate),
    `${(two.rate.median / one.rate.median).toFixed(2)} ×`,
    shown(one.cpuMicros),
    shown(two.cpuMicros),
    numberText(two.generatorMicros.median),
  ]);
  const table = markdownTable(
    [
      ...["Calls", "1 worker, /s", "2 workers, /s", "ratio"],
      ...["1 worker, µs of CPU", "2 workers, µs of CPU", "generator, µs"],
    ],
    rows,
  );
  const rounds = Object.values(work)[0]?.[1].rate.rounds.length;
  return `${table}\n\n${originText(rounds, origin)}. Resident memory: ${residentMiB[1]} MiB and ${residentMiB[2]} MiB.`;
}
