/** A competitor in a comparison: a name, and a function that runs one round and returns its rate. */
export interface Contestant {
  readonly name: string;
  readonly run: () => Promise<number>;
}

/** The rounds of a contestant, and their median. */
export interface Standing {
  readonly name: string;
  readonly rate: number;
  readonly rounds: readonly number[];
}

/** Runs all contestants in turn, round by round, so that noise of the machine affects all of them. */
export async function compare(rounds: number, contestants: readonly Contestant[]): Promise<Standing[]> {
  const rates = contestants.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contestant] of contestants.entries()) rates[index]?.push(await contestant.run());
  }
  return contestants.map(({ name }, index) => {
    const rounds = rates[index] ?? [];
    return { name, rate: median(rounds), rounds };
  });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Prints the standings with the ratio of each to the first. */
export function printStandings(title: string, unit: string, standings: readonly Standing[]): void {
  const first = standings[0]?.rate ?? Number.NaN;
  const width = Math.max(...standings.map(({ name }) => name.length));
  console.log(`\n${title}`);
  for (const { name, rate } of standings) {
    const shown = Math.round(rate).toLocaleString("en").padStart(9);
    console.log(`  ${name.padEnd(width)}  ${shown} ${unit}  ${(first / rate).toFixed(2).padStart(6)} ×`);
  }
  console.log("  (× is the first line's rate divided by the line's own)");
}
