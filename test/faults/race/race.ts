import assert from "node:assert/strict";
import { type HistoryCall, linearize } from "../../support/linearizability.ts";
import type { Random } from "../../support/random.ts";
import { CELL_MODEL, type Cell, describeHistory } from "./cell.ts";
import { type RaceCall, type RaceResult, type Racer, REFUSALS } from "./racer.ts";

type Recorded = HistoryCall<RaceCall, RaceResult> & { readonly racer: string };

/** Returns the names of a race, in pairs, in the root and in namespaces. */
export function cellsIn(namespaces: readonly (readonly string[])[], count: number): Cell[] {
  return Array.from({ length: count }, (_, i) => {
    const parent = namespaces[i % namespaces.length] as readonly string[];
    return {
      names: [
        [...parent, `a${i}`],
        [...parent, `b${i}`],
      ],
    };
  });
}

/** Waits for all promises, so that no work continues, and then fails with the first failure. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/**
 * Lets all racers make equal calls at once, for every cell: create, then rename, then drop. Each time a single racer
 * must win, the others must get an allowed error, and all must see equal tables afterwards.
 *
 * @returns the winners wherever there was not exactly one
 */
export async function raceForEach(racers: readonly Racer[], cells: readonly Cell[]): Promise<string[]> {
  const wrong: string[] = [];
  const steps: readonly ((cell: Cell) => RaceCall)[] = [
    ({ names }) => ({ kind: "create", id: names[0] }),
    ({ names }) => ({ kind: "rename", id: names[0], to: names[1] }),
    ({ names }) => ({ kind: "drop", id: names[1] }),
  ];
  for (const [step, callFor] of steps.entries()) {
    await all(
      cells.map(async (cell) => {
        const call = callFor(cell);
        const able = racers.filter(({ renames = true }) => renames || call.kind !== "rename");
        const results = await all(able.map((racer) => racer.call(call)));
        const by = able.filter((_, i) => results[i]?.ok && !results[i].unclear).map(({ name }) => name);
        const fits = by.length === 1 || (by.length === 0 && results.some(({ unclear }) => unclear));
        if (!fits) wrong.push(`${call.kind} ${call.id.join("$")}: ${by.join(" and ") || "nobody"}`);
        for (const [i, result] of results.entries()) {
          const codes: readonly number[] = Object.values(REFUSALS);
          const told = `${able[i]?.name}: ${call.kind} ${call.id.join("$")} got ${JSON.stringify(result)}`;
          assert.ok(result.ok || result.unclear || codes.includes(result.code), told);
        }
      }),
    );
    const there = cells.map(({ names }) => (step === 0 ? names[0] : step === 1 ? names[1] : undefined));
    await assertAgreement(
      racers,
      cells,
      there.filter((id) => id !== undefined),
    );
  }
  return wrong;
}

/** Checks that all racers list the given tables, or without them that their lists are equal. */
export async function assertAgreement(
  racers: readonly Racer[],
  cells: readonly Cell[],
  expected?: readonly (readonly string[])[],
): Promise<void> {
  const parents = new Map(cells.map(({ names: [id] }) => [id.slice(0, -1).join("$"), id.slice(0, -1)]));
  for (const [key, parent] of parents) {
    const seen = await all(racers.map((racer) => racer.tables(parent)));
    const wanted =
      expected?.filter((id) => id.slice(0, -1).join("$") === key).map((id) => id.at(-1) as string) ?? seen[0];
    for (const [i, names] of seen.entries()) {
      assert.deepEqual(names, wanted?.toSorted(), `${racers[i]?.name} sees other tables in "${key}"`);
    }
  }
}

/** Lets racers make random calls on shared names; afterwards the history of each cell must have an order. */
export async function raceAtRandom(
  racers: readonly Racer[],
  cells: readonly Cell[],
  callsEach: number,
  random: Random,
): Promise<void> {
  const histories = new Map<Cell, Recorded[]>(cells.map((cell) => [cell, []]));
  await all(
    cells.flatMap((cell) =>
      racers.map(async (racer) => {
        for (let i = 0; i < callsEach; i++) {
          const call = drawCall(cell, random, racer);
          const invokedAt = performance.now();
          const result = await racer.call(call);
          histories
            .get(cell)
            ?.push({ racer: racer.name, call, result, invokedAt, returnedAt: performance.now() });
        }
      }),
    ),
  );
  for (const history of histories.values()) {
    assert.ok(linearize(history, CELL_MODEL) !== undefined, `no order fits\n${describeHistory(history)}`);
  }
}

const KINDS = ["declare", "declare", "drop", "rename", "exists", "describe"] as const;

function drawCall({ names }: Cell, random: Random, { renames = true }: Racer): RaceCall {
  const [id, to] = random.below(2) === 0 ? names : [names[1], names[0]];
  const kind = random.pick(renames ? KINDS : KINDS.filter((each) => each !== "rename"));
  return kind === "rename" ? { kind, id, to } : { kind, id };
}
