import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { missedText, numberText, originText, readResult, shown } from "./rounds.ts";

interface CatalogResult {
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
  const { origin, workers, compared } = readResult<CatalogResult>("catalog-workers");
  const rows = compared.map(({ tables, title, goal, gateway, adapter }) => {
    const times = gateway.median / adapter.median;
    return [
      title,
      numberText(tables),
      shown(gateway),
      shown(adapter),
      `${times < 100 ? times.toFixed(1) : times.toFixed(0)} ×`,
      `${goal} ×${missedText(times < goal)}`,
    ];
  });
  const table = markdownTable(["", "tables", "gateway, /s", "adapter, /s", "ratio", "goal"], rows);
  const rounds = compared[0]?.gateway.rounds.length;
  return `${table}\n\n${originText(rounds, origin)}, with ${workers} workers.`;
}
