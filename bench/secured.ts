// The cost of security, on one catalog: calls of metadata and a long listing through gateways with more and more of it, in
// turn; decisions by 1,000 policies; and the times of a caller beside another one that floods.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compareSides, LISTING, METADATA, type Work } from "./secured/calls.ts";
import { measureDecisions } from "./secured/decisions.ts";
import { compareFlood, LIMIT } from "./secured/flood.ts";
import { makeWorld, type Side } from "./secured/gateways.ts";
import { type Figures, startFigures } from "./support/figures.ts";

const USAGE = { rounds: { type: "string", default: "7" } } as const;

const NEIGHBOURS: Readonly<Record<keyof Awaited<ReturnType<typeof compareFlood>>, string>> = {
  alone: "nothing",
  flood: "a flood from 64 connections",
  permitted: "the same caller at 450 calls a second, which it may",
  spin: "a process that computes as much as the flood takes",
};

/**
 * Runs the comparisons; takes the names of some of them, or none for all: `decisions`, `calls`, `listing`, `flood`. `--rounds N` is how often
 * each is measured.
 */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values, positionals: chosen } = parseArgs({
    args: [...args],
    options: USAGE,
    allowPositionals: true,
  });
  const rounds = Number(values.rounds);
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    await using world = await makeWorld(folder);
    const { keys, policies, rates, audit } = world.options;
    const open = await world.start("open", []);
    const compareAll = async (heads: string, works: readonly Work[], other: Side, least: number) => {
      const figures = startFigures(
        heads,
        "open, /s",
        "secured, /s",
        "rate, ×",
        "open, µs of CPU",
        "secured, µs",
      );
      for (const work of works) {
        const [first, second] = await compareSides(work, [open, other], rounds);
        if (first === undefined || second === undefined) throw new Error(`${work.title} was not measured`);
        const { share } = second;
        figures.add([work.title, first.rate, second.rate, share, first.cpuMicros, second.cpuMicros], {
          of: share.median,
          least,
          unit: "×",
        });
      }
      return figures;
    };
    const parts: Readonly<Record<string, () => Promise<Figures>>> = {
      async calls() {
        const side = await world.start("secured", [...keys, ...policies, ...rates, ...audit]);
        return compareAll("keys, 1,000 policies, three rate limits, required audit log", METADATA, side, 0.8);
      },
      listing: async () =>
        compareAll(
          "keys, 1,000 policies",
          [LISTING],
          await world.start("policies", [...keys, ...policies]),
          0.5,
        ),
      async decisions() {
        const { remembered, first } = await measureDecisions(rounds);
        const figures = startFigures("a decision by 1,000 policies", "µs");
        figures.add(["once it was made", remembered]);
        figures.add(["the first one of a new caller", first]);
        return figures;
      },
      async flood() {
        const limits = ["--rate-limit", `principal=${LIMIT}`];
        const side = await world.start("flood", [...keys, ...policies, ...limits]);
        const { quiet, flooder } = world.callers;
        const figures = startFigures(
          ...["a caller with 200 calls a second beside", "p50, ms", "p99, ms", "× the p99 alone"],
          ...["CPU of the gateway, cores", "of the neighbour", "calls", "refused"],
        );
        const found = Object.entries(await compareFlood(side, quiet, flooder, rounds));
        for (const [name, { p50, p99, ratio, gatewayShare, neighbourShare, sent, refused }] of found)
          figures.add(
            [
              ...[NEIGHBOURS[name as keyof typeof NEIGHBOURS], p50, p99, ratio],
              ...[gatewayShare.median, neighbourShare.median, sent.median, refused.median],
            ],
            ...(name === "flood" ? [{ of: ratio.median, most: 2, unit: "×" }] : []),
          );
        return figures;
      },
    };
    const unknown = chosen.find((name) => parts[name] === undefined);
    if (unknown !== undefined) throw new Error(`there is no part ${unknown}, only ${Object.keys(parts)}`);
    const measured: Figures[] = [];
    for (const [name, measure] of Object.entries(parts))
      if (chosen.length === 0 || chosen.includes(name)) measured.push(await measure());
    return measured;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
