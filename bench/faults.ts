// Measures upstreams with faults: the outcome for clients of the gateway, its duration, and the number of calls that
// the upstream gets. It runs the table of test/faults/upstreams, one case after the other.
import { FAULTS, WIRES } from "../test/faults/upstreams/faults.ts";
import { type Case, casesOf, type Outcome, startFaultyWorld } from "../test/faults/upstreams/measure.ts";
import { hedgedSeries, runSeries, SERIES } from "../test/faults/upstreams/series.ts";

const HEDGE_AFTER_MS = 50;

/** Runs all faults and series; prints tables in Markdown. Takes no options. */
export async function run(): Promise<void> {
  const world = await startFaultyWorld();
  // The first calls of a process and of a connection are slow.
  for (const wire of WIRES) for (const one of casesOf(FAULTS[0] as never, wire)) await world.measure(one);
  console.log(
    "| Fault | By | describe | query | insert | create namespace |\n| --- | --- | --- | --- | --- | --- |",
  );
  for (const fault of FAULTS) {
    for (const wire of WIRES) {
      const cases = casesOf(fault, wire);
      if (cases.length === 0) continue;
      const cells = new Map<string, string[]>();
      for (const one of cases) {
        const outcomes = cells.get(one.operation) ?? [];
        cells.set(one.operation, outcomes);
        outcomes.push(cellOf(one, await world.measure(one)));
      }
      const row = [fault.name, wire, ...[...cells.values()].map((outcomes) => merged(outcomes))];
      console.log(`| ${row.join(" | ")} |`);
    }
  }
  await world.close();

  console.log(
    "\n| Reads, one after the other | By | answered | calls of each address | p50 | longest |\n| --- | --- | --- | --- | --- | --- |",
  );
  for (const series of [...SERIES, hedgedSeries(HEDGE_AFTER_MS, () => {})]) {
    for (const wire of WIRES) {
      const { answered, calls, p50Ms, maxMs } = await runSeries(series, wire);
      const row = [
        series.name,
        wire,
        `${answered} of ${series.reads}`,
        calls.join(" + "),
        millis(p50Ms),
        millis(maxMs),
      ];
      console.log(`| ${row.join(" | ")} |`);
    }
  }
  process.exit(0);
}

function cellOf({ client, operation }: Case, { saw, ms, calls }: Outcome): string {
  const by = operation === "query" ? `${client}: ` : "";
  return `${by}${saw}, ${millis(ms)}, ${calls}`;
}

/** Merges outcomes of several clients that differ only in time. */
function merged(outcomes: readonly string[]): string {
  const [first = ""] = outcomes;
  const facts = (outcome: string) => outcome.replace(/^\w+: /, "").replace(/, [\d,.]+ ms/, "");
  const same = outcomes.every((outcome) => facts(outcome) === facts(first));
  return same ? first.replace(/^\w+: /, "") : outcomes.join("; ");
}

function millis(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
