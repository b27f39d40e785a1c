// Upkeep of tables: searches after many small adds, beside the local library after its optimize(); and the calls beside
// runs of upkeep, compared with the others. npm run bench -- upkeep [--rounds N] [--seconds N]
import { parseArgs } from "node:util";
import { type Rounds, roundsOf, writeResults } from "./support/results.ts";
import { type AfterAdds, SEARCHES, throughGateway, withLibrary } from "./upkeep/after-adds.ts";
import { measureBeside } from "./upkeep/beside.ts";

const OPTIONS = {
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "30" },
} as const;

/** Runs both measurements, prints tables in Markdown and writes the figures as JSON. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const rounds = Array.from({ length: Number(values.rounds) }, (_, round) => round);
  const searches = await compareSearches(rounds);
  const beside = await compareBeside(rounds, Number(values.seconds));
  console.log(`\nThe figures are in ${writeResults("upkeep", { searches, beside })}`);
}

const SIDES = { gateway: throughGateway, library: withLibrary };
const MOMENTS = ["before", "atOnce", "later"] as const;

async function compareSearches(rounds: readonly number[]): Promise<object> {
  console.log("| search, median | side | before the adds | right after | after upkeep or optimize() |");
  console.log(`| --- ${"| --- ".repeat(4)}|`);
  const results: Record<string, object> = {};
  for (const search of SEARCHES) {
    const found: Record<string, AfterAdds[]> = { gateway: [], library: [] };
    for (const _ of rounds)
      for (const [side, measure] of Object.entries(SIDES)) found[side]?.push(await measure(search));
    for (const [side, times] of Object.entries(found)) {
      const figures = MOMENTS.map((moment) => shown(roundsOf(times.map((each) => each[moment]))));
      console.log(`| ${[search.name, side, ...figures].join(" | ")} |`);
    }
    results[search.name] = found;
  }
  return results;
}

async function compareBeside(rounds: readonly number[], seconds: number): Promise<object> {
  console.log(
    "\n| calls | runs | quiet: number | p50 | p99 | beside upkeep: number | p50 | p99 | ratio of p99 |",
  );
  console.log(`| --- ${"| --- ".repeat(8)}|`);
  const results: object[] = [];
  for (const _ of rounds) {
    const { runs, kinds } = await measureBeside(seconds);
    for (const { kind, quiet, beside } of kinds) {
      const cells = [quiet, beside].flatMap(({ calls, p50, p99 }) => [calls, p50.toFixed(1), p99.toFixed(1)]);
      console.log(`| ${[kind, runs, ...cells, (beside.p99 / quiet.p99).toFixed(2)].join(" | ")} |`);
    }
    results.push({ runs, kinds });
  }
  return results;
}

function shown({ median, min, max }: Rounds): string {
  return `${median.toFixed(1)} ms (${min.toFixed(1)}–${max.toFixed(1)})`;
}
