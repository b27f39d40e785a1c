// Upkeep of tables: searches after many small adds, beside the local library after its optimize(); and the calls beside
// runs of upkeep, compared with the others. npm run bench -- upkeep [--rounds N] [--seconds N]
import { parseArgs } from "node:util";
import { type Figures, startFigures } from "./support/figures.ts";
import { roundsOf, timesOf } from "./support/results.ts";
import { type AfterAdds, SEARCHES, throughGateway, withLibrary } from "./upkeep/after-adds.ts";
import { measureBeside } from "./upkeep/beside.ts";

const OPTIONS = {
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "30" },
} as const;

/** The most that a search takes after upkeep, as a multiple of the library's after its `optimize()`, and the most of a p99 beside upkeep. */
const [MOST_AFTER_ADDS, MOST_BESIDE] = [1.5, 2];

/** Runs both measurements: `[--rounds NUMBER] [--seconds NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const rounds = Array.from({ length: Number(values.rounds) }, (_, round) => round);
  return [await compareSearches(rounds), await compareBeside(rounds, Number(values.seconds))];
}

const SIDES = { gateway: throughGateway, library: withLibrary };
const MOMENTS = ["before", "atOnce", "later"] as const;

async function compareSearches(rounds: readonly number[]): Promise<Figures> {
  const figures = startFigures(
    ...["search, p50 in ms", "side", "before the adds", "right after", "after upkeep or `optimize()`"],
  );
  for (const search of SEARCHES) {
    const found: Record<keyof typeof SIDES, AfterAdds[]> = { gateway: [], library: [] };
    for (const _ of rounds)
      for (const side of ["gateway", "library"] as const) found[side].push(await SIDES[side](search));
    const of = (side: keyof typeof SIDES, moment: keyof AfterAdds) =>
      roundsOf(found[side].map((each) => each[moment]));
    const times = of("gateway", "later").median / of("library", "later").median;
    const goal = { of: times, most: MOST_AFTER_ADDS, unit: "× the library's" };
    for (const side of ["gateway", "library"] as const) {
      const cells = MOMENTS.map((moment) => of(side, moment));
      figures.add([search.name, side, ...cells], ...(side === "gateway" ? [goal] : []));
    }
  }
  return figures;
}

async function compareBeside(rounds: readonly number[], seconds: number): Promise<Figures> {
  const figures = startFigures("calls", "p99 without upkeep, ms", "p99 beside it, ms", "×", "runs of upkeep");
  const found = [];
  for (const _ of rounds) found.push(await measureBeside(seconds));
  const runs = roundsOf(found.map((round) => round.runs));
  for (const name of ["reads", "writes"] as const) {
    const kinds = found.flatMap((round) => round.kinds.filter(({ kind }) => kind === name));
    const [quiet, beside] = [
      roundsOf(kinds.map((kind) => kind.quiet.p99)),
      roundsOf(kinds.map((kind) => kind.beside.p99)),
    ];
    const times = timesOf(beside, quiet);
    const goal = { of: times.median, most: MOST_BESIDE, unit: "×" };
    figures.add([name, quiet, beside, times, runs], goal);
  }
  return figures;
}
