// The cost of security, on one catalog: calls of metadata and a long listing through gateways with more and more of it, in
// turn; decisions by 1,000 policies; and the times of a caller beside another one that floods.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareSides, LISTING, METADATA, type SideFigures, type Work } from "./secured/calls.ts";
import { type DecisionTimes, measureDecisions } from "./secured/decisions.ts";
import { compareFlood, LIMIT } from "./secured/flood.ts";
import { makeWorld, type Side } from "./secured/gateways.ts";
import { keepResults } from "./support/results.ts";

/** Results of a whole run. */
export interface SecuredResult {
  readonly decisions: DecisionTimes;
  /** Figures of an open gateway and of a secured one, by the title of the work. */
  readonly calls: Readonly<Record<string, readonly SideFigures[]>>;
  /** Figures of an open gateway and of one with policies. */
  readonly listing: Readonly<Record<string, readonly SideFigures[]>>;
  readonly flood: Awaited<ReturnType<typeof compareFlood>>;
}

type Part = keyof SecuredResult;
const PARTS: readonly Part[] = ["decisions", "calls", "listing", "flood"];

/**
 * Runs the comparisons; takes the names of some of them, or none for all: `decisions`, `calls`, `listing`, `flood`. A run of all writes
 * `bench/results/secured.json`.
 */
export async function run(chosen: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    await using world = await makeWorld(folder);
    const { keys, policies, rates, audit } = world.options;
    const open = await world.start("open", []);
    const compareAll = async (works: readonly Work[], other: Side) => {
      const figures: Record<string, readonly SideFigures[]> = {};
      for (const work of works) figures[work.title] = await compareSides(work, [open, other]);
      return figures;
    };
    const measure: { readonly [P in Part]: () => Promise<SecuredResult[P]> } = {
      decisions: measureDecisions,
      async calls() {
        const name = "keys, 1,000 policies, three rate limits, required audit log";
        return compareAll(METADATA, await world.start(name, [...keys, ...policies, ...rates, ...audit]));
      },
      listing: async () =>
        compareAll([LISTING], await world.start("keys, 1,000 policies", [...keys, ...policies])),
      async flood() {
        const limits = ["--rate-limit", `principal=${LIMIT}`];
        const side = await world.start("flood", [...keys, ...policies, ...limits]);
        return compareFlood(side, world.callers.quiet, world.callers.flooder);
      },
    };
    const parts = PARTS.filter((part) => chosen.length === 0 || chosen.includes(part));
    const result: Partial<Record<Part, unknown>> = {};
    for (const part of parts) result[part] = await measure[part]();
    if (parts.length === PARTS.length) keepResults("secured", result);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
