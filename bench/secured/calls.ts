import { computedSeconds } from "../support/cpu.ts";
import { type LightLoad, runLightLoad } from "../support/light-load.ts";
import { type Rounds, roundsOf, timesOf } from "../support/results.ts";
import { type Side, TABLES } from "./gateways.ts";
import { BENCH, visibleTables } from "./policy-set.ts";

const SECONDS = 2;

/** A kind of load. */
export interface Work extends Pick<LightLoad, "method" | "paths" | "connections"> {
  readonly title: string;
}

/** Tables that calls name; all sides show them. */
const NAMES = visibleTables(TABLES).slice(0, 200);

/** Calls of metadata: the kinds that clients send before they read or write. */
export const METADATA: readonly Work[] = [
  { title: "describe", method: "POST", paths: ofTables("describe"), connections: 32 },
  { title: "exists", method: "POST", paths: ofTables("exists"), connections: 32 },
  {
    title: "list a page of 100",
    method: "GET",
    paths: NAMES.map((name) => `/v1/namespace/${BENCH}/table/list?limit=100&page_token=${name}`),
    connections: 32,
  },
];

/** A listing of everything. */
export const LISTING: Work = {
  title: `list ${TABLES.toLocaleString("en")} tables`,
  method: "GET",
  paths: [`/v1/namespace/${BENCH}/table/list?limit=${TABLES}`],
  connections: 1,
};

function ofTables(operation: string): string[] {
  return NAMES.map((name) => `/v1/table/${BENCH}$${name}/${operation}`);
}

/** Figures of a side under a load. */
export interface SideFigures {
  /** Calls per second. */
  readonly rate: Rounds;
  /** Computing time of the gateway for a call, in microseconds. */
  readonly cpuMicros: Rounds;
  /** The rate as a multiple of that of the first side in the same round. */
  readonly share: Rounds;
}

/** Measures the sides in turn. */
export async function compareSides(
  { title: _, ...load }: Work,
  sides: readonly Side[],
  rounds: number,
): Promise<readonly SideFigures[]> {
  const rates = sides.map((): number[] => []);
  const micros = sides.map((): number[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, { server, headers }] of sides.entries()) {
      const before = computedSeconds(server.pid);
      const rate = await runLightLoad({ ...load, body: "{}", seconds: SECONDS, port: server.port, headers });
      // The first round is for the compiler.
      if (round === 0) continue;
      rates[index]?.push(Math.round(rate));
      micros[index]?.push(((computedSeconds(server.pid) - before) * 1e6) / (rate * SECONDS));
    }
  }
  const first = roundsOf(rates[0] ?? []);
  return sides.map((_, index) => {
    const rate = roundsOf(rates[index] ?? []);
    return { rate, cpuMicros: roundsOf(micros[index] ?? []), share: timesOf(rate, first) };
  });
}
