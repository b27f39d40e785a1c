import { type Rounds, roundsOf } from "./results.ts";

/** Measures sides in turn, round by round, so that noise of the machine affects all of them; returns the rounds of each. */
export async function compare(
  rounds: number,
  sides: Readonly<Record<string, () => Promise<number>>>,
): Promise<Readonly<Record<string, Rounds>>> {
  const found = Object.entries(sides).map(([name, measure]) => ({ name, measure, values: [] as number[] }));
  for (let round = 0; round < rounds; round += 1)
    for (const { measure, values } of found) values.push(await measure());
  return Object.fromEntries(found.map(({ name, values }) => [name, roundsOf(values)]));
}
