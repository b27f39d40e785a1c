import { computedSeconds } from "../support/cpu.ts";
import { type LightLoad, runLightLoad } from "../support/light-load.ts";
import { figureOf } from "../support/results.ts";
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

/** Prints, for each side in turn, the rate, the time of computing for a call, and the ratio to the first side in the same round. */
export async function compareSides({ title, ...load }: Work, sides: readonly Side[]): Promise<void> {
  const rates = sides.map((): number[] => []);
  const micros = sides.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, { server, headers }] of sides.entries()) {
      const before = computedSeconds(server.pid);
      const rate = await runLightLoad({ ...load, body: "{}", seconds: SECONDS, port: server.port, headers });
      // The first round is for the compiler.
      if (round === 0) continue;
      rates[index]?.push(rate);
      micros[index]?.push(((computedSeconds(server.pid) - before) * 1e6) / (rate * SECONDS));
    }
  }
  console.log(
    `\n${title}, REST, ${load.connections} connections: median (least to most) of ${ROUNDS} rounds`,
  );
  for (const [index, { name }] of sides.entries()) {
    const own = rates[index] ?? [];
    const share = own.map((rate, round) => (100 * rate) / (rates[0]?.[round] ?? Number.NaN));
    console.log(
      `  ${name}: ${shown(own)} calls/s, ${shown(micros[index] ?? [])} µs of computing, ${shown(share)} % of the first`,
    );
  }
}

function shown(values: readonly number[]): string {
  const { median, least, most } = figureOf(values);
  const text = (value: number) => Math.round(value).toLocaleString("en");
  return `${text(median)} (${text(least)} to ${text(most)})`;
}
