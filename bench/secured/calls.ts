import { computedSeconds } from "../support/cpu.ts";
import { type LightLoad, runLightLoad } from "../support/light-load.ts";
import { type Rounds, roundsOf } from "../support/results.ts";
import { type Side, TABLES } from "./gateways.ts";
import { BENCH, visibleTables } from "./policy-set.ts";

const ROUNDS = 7;
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
  readonly name: string;
  /** Calls per second. */
  readonly rate: Rounds;
  /** Computing time of the gateway for a call, in microseconds. */
  readonly cpuMicros: Rounds;
  /** The rate as a percentage of that of the first side in the same round. */
  readonly share: Rounds;
}

/** Measures the sides in turn. */
export async function compareSides(
  { title, ...load }: Work,
  sides: readonly Side[],
): Promise<readonly SideFigures[]> {
  const rates = sides.map((): number[] => []);
  const micros = sides.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, { server, headers }] of sides.entries()) {
      const before = computedSeconds(server.pid);
      const rate = await runLightLoad({ ...load, body: "{}", seconds: SECONDS, port: server.port, headers });
      // The first round is for the compiler.
      if (round === 0) continue;
      rates[index]?.push(Math.round(rate));
      const each = ((computedSeconds(server.pid) - before) * 1e6) / (rate * SECONDS);
      micros[index]?.push(Number(each.toFixed(1)));
    }
  }
  const figures = sides.map(({ name }, index) => {
    const own = rates[index] ?? [];
    const share = own.map((rate, round) => Math.round((100 * rate) / (rates[0]?.[round] ?? Number.NaN)));
    return { name, rate: roundsOf(own), cpuMicros: roundsOf(micros[index] ?? []), share: roundsOf(share) };
  });
  console.log(
    `\n${title}, REST, ${load.connections} connections: median (least to most) of ${ROUNDS} rounds`,
  );
  for (const { name, rate, cpuMicros, share } of figures) {
    console.log(
      `  ${name}: ${shown(rate)} calls/s, ${shown(cpuMicros)} µs of computing, ${shown(share)} % of the first`,
    );
  }
  return figures;
}

function shown({ median, min, max }: Rounds): string {
  const text = (value: number) => Math.round(value).toLocaleString("en");
  return `${text(median)} (${text(min)} to ${text(max)})`;
}
