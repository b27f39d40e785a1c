import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { numberText, originText, readResult, shown } from "./rounds.ts";

/** Resident memory in MiB, by the number of tables and of workers. */
interface MemoryResult {
  readonly residentMiB: Readonly<
    Record<string, Readonly<Record<string, Readonly<Record<"loaded" | "called", Rounds>>>>>
  >;
}

/** The memory of one worker and of four, as `npm run bench -- memory` has written it. */
export function memoryTable(): string {
  const { origin, residentMiB } = readResult<MemoryResult>("memory");
  const rows = Object.entries(residentMiB).flatMap(([tables, byWorkers]) => {
    const base = Object.values(byWorkers)[0];
    return Object.entries(byWorkers).map(([workers, { loaded, called }]) => [
      `${numberText(Number(tables))} tables, ${workers} ${workers === "1" ? "worker" : "workers"}`,
      shown(loaded),
      times(loaded, base?.loaded),
      shown(called),
      times(called, base?.called),
    ]);
  });
  const heads = ["Resident memory, MiB", "at rest", "× one worker", "after calls", "× one worker"];
  const rounds = Object.values(Object.values(residentMiB)[0] ?? {})[0]?.loaded.rounds.length;
  return `${markdownTable(heads, rows)}\n\n${originText(rounds, origin)}.`;
}

function times({ median }: Rounds, base: Rounds | undefined): string {
  return base === undefined || base.median === median ? "" : (median / base.median).toFixed(2);
}
