import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Origin, Rounds } from "../../bench/support/result-file.ts";
import { markdownTable } from "./markdown.ts";

const results = join(import.meta.dirname, "..", "..", "bench", "results", "catalog-workers.json");

interface CatalogResult {
  readonly origin: Origin;
  readonly workers: number;
  readonly compared: readonly {
    readonly tables: number;
    readonly title: string;
    readonly goal: number;
    readonly gateway: Rounds;
    readonly adapter: Rounds;
  }[];
}

/** The catalog of workers beside the adapter, as `npm run bench -- catalog --workers N` has written it. */
export function catalogWorkersTable(): string {
  const { origin, workers, compared } = JSON.parse(readFileSync(results, "utf8")) as CatalogResult;
  const rows = compared.map(({ tables, title, goal, gateway, adapter }) => {
    const times = gateway.median / adapter.median;
    const missed = times < goal ? ", **missed**" : "";
    return [
      title,
      text(tables),
      shown(gateway),
      shown(adapter),
      `${times < 100 ? times.toFixed(1) : times.toFixed(0)} ×`,
      `${goal} ×${missed}`,
    ];
  });
  const table = markdownTable(["", "tables", "gateway, /s", "adapter, /s", "ratio", "goal"], rows);
  const rounds = compared[0]?.gateway.rounds.length;
  return `${table}\n\nMedians of ${rounds} rounds, with their range; ${workers} workers; commit ${origin.commit}, Node ${origin.node}, ${origin.cores} cores of an ${origin.cpu}.`;
}

function shown({ median, min, max }: Rounds): string {
  return `${text(median)} (${text(min)}–${text(max)})`;
}

function text(value: number): string {
  return value.toLocaleString("en");
}
