import autocannon from "autocannon";
import { percentile, runPacedLoad } from "../support/paced-load.ts";
import { figureOf } from "../support/results.ts";
import type { Headers } from "./gateways.ts";
import { BENCH, visibleTables } from "./policy-set.ts";

const ROUNDS = 6;
const SECONDS = 5;
const CALLS_PER_SECOND = 200;

/** Prints the times of a caller that calls 200 times a second, alone and while another one sends what its 64 connections take. */
export async function compareFlood(port: number, quiet: Headers, flooder: Headers): Promise<void> {
  const [table] = visibleTables(2);
  const target = { method: "POST", path: `/v1/table/${BENCH}$${table}/describe`, body: "{}" } as const;
  const pace = { perSecond: CALLS_PER_SECOND, seconds: SECONDS };
  const times = () => runPacedLoad({ ...target, ...pace, port, headers: quiet });
  const flood = () =>
    autocannon({
      ...{ url: `http://127.0.0.1:${port}${target.path}`, method: "POST", body: "{}" },
      headers: { "content-type": "application/json", ...flooder },
      ...{ connections: 64, workers: 1, duration: SECONDS + 2 },
    });
  await times();
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await times();
    const flooding = flood();
    const beside = await times();
    const { requests, non2xx } = await flooding;
    rounds.push({ alone, beside, sent: requests.total, refused: non2xx });
  }
  console.log(`\ndescribe of a quiet caller, milliseconds: median (least to most) of ${ROUNDS} rounds`);
  for (const [name, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const) {
    const alone = rounds.map((round) => percentile(round.alone, share));
    const beside = rounds.map((round) => percentile(round.beside, share));
    const ratios = beside.map((value, round) => value / (alone[round] ?? Number.NaN));
    console.log(
      `  ${name} alone ${shown(alone)}, beside a flood ${shown(beside)}, ratio in a round ${shown(ratios)}`,
    );
  }
  for (const { sent, refused } of rounds) console.log(`  the flood: ${sent} calls, ${refused} refused`);
}

function shown(values: readonly number[]): string {
  const { median, least, most } = figureOf(values);
  return `${median.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`;
}
