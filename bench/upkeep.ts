// Upkeep of tables: searches after many small adds, beside the local library after its optimize(); and the calls beside
// runs of upkeep, compared with the others. npm run bench -- upkeep [--rounds N] [--seconds N]
// With --engine ray, reads and writes without upkeep, beside that of the gateway, and beside that whose compactions a Ray head does
// on a processor of its own:
// npm run bench -- upkeep --engine ray [--minutes N] [--rounds N] [--rows N] [--reads N] [--adds N] [--updates N] [--indexed]
// where updates are those of a minute.
import { parseArgs } from "node:util";
import { type Figures, startFigures } from "./support/figures.ts";
import { roundsOf, timesOf } from "./support/results.ts";
import { type AfterAdds, SEARCHES, throughGateway, withLibrary } from "./upkeep/after-adds.ts";
import { measureBeside } from "./upkeep/beside.ts";
import {
  type EngineFigures,
  type EngineLoad,
  measureEngine,
  UPKEEPS,
  useGatewayCpu,
} from "./upkeep/engines.ts";

const OPTIONS = {
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "30" },
  engine: { type: "string", default: "embedded" },
  minutes: { type: "string", default: "10" },
  rows: { type: "string", default: "1000000" },
  reads: { type: "string", default: "60" },
  adds: { type: "string", default: "4" },
  updates: { type: "string", default: "20" },
  indexed: { type: "boolean", default: false },
} as const;

/** The most that a search takes after upkeep, as a multiple of the library's after its `optimize()`, and the most of a p99 beside upkeep. */
const [MOST_AFTER_ADDS, MOST_BESIDE] = [1.5, 2];

/** The most that the gateway computes for upkeep with compactions on a cluster, as a part of what it computes otherwise, and the most of a p99. */
const [MOST_COMPUTED, MOST_BESIDE_CLUSTER] = [0.1, 1.1];

/** Runs both measurements, or that of engines: `[--rounds NUMBER] [--seconds NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const rounds = Array.from({ length: Number(values.rounds) }, (_, round) => round);
  if (values.engine === "ray") {
    const { minutes, rows, reads, adds, updates, indexed: isIndexed } = values;
    const [seconds, ...counts] = [Number(minutes) * 60, Number(rows), Number(reads), Number(adds)] as const;
    return [
      await compareEngines(rounds, {
        seconds,
        rows: counts[0],
        reads: counts[1],
        adds: counts[2],
        updates: Number(updates) / 60,
        isIndexed,
      }),
    ];
  }
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

async function compareEngines(rounds: readonly number[], load: EngineLoad): Promise<Figures> {
  const figures = startFigures(
    ...["upkeep", "p50 of reads, ms", "p99 of reads, ms", "× without", "p99 of adds, ms"],
    ...["computing of the gateway, s", "for upkeep, s", "× in the gateway", "computing of Ray, s"],
    ...["runs", "fragments joined", "fragments at the end", "failed calls"],
  );
  const found = UPKEEPS.map((): EngineFigures[] => []);
  useGatewayCpu();
  for (const _ of rounds)
    for (const [at, upkeep] of UPKEEPS.entries()) found[at]?.push(await measureEngine(upkeep, load));
  const of = (at: number, read: (figures: EngineFigures) => number) => roundsOf((found[at] ?? []).map(read));
  const forUpkeep = (at: number) =>
    roundsOf(
      rounds.map((round) => {
        const [elsewhere, own] = [found[0]?.[round], found[at]?.[round]];
        return (own?.gatewaySeconds ?? Number.NaN) - (elsewhere?.gatewaySeconds ?? Number.NaN);
      }),
    );
  for (const [at, { name, beside: where }] of UPKEEPS.entries()) {
    const p99 = (which: number) => of(which, ({ reads }) => reads.p99);
    const [beside, share] = [timesOf(p99(at), p99(0)), timesOf(forUpkeep(at), forUpkeep(1))];
    const goals =
      where === "cluster"
        ? [
            { of: beside.median, most: MOST_BESIDE_CLUSTER, unit: "× p99" },
            { of: share.median, most: MOST_COMPUTED, unit: "× computing" },
          ]
        : [];
    const cells = [
      ...[of(at, ({ reads }) => reads.p50), p99(at), beside, of(at, ({ adds }) => adds.p99)],
      ...[of(at, ({ gatewaySeconds }) => gatewaySeconds), forUpkeep(at), share],
      ...[of(at, ({ clusterSeconds }) => clusterSeconds), of(at, ({ runs }) => runs)],
      ...[
        of(at, ({ joined }) => joined),
        of(at, ({ fragments }) => fragments),
        of(at, ({ failed }) => failed),
      ],
    ];
    figures.add([name, ...cells], ...goals);
  }
  return figures;
}
