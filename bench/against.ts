// The computing time of calls beside that of an earlier revision, in turn: npm run bench -- against REV [--bound 1.25] [--stop-early]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  DESCRIBE_BY_GRPC,
  DESCRIBE_BY_REST,
  DIRECTORY_LOADS,
  type Load,
  prepareCatalog,
} from "./against/calls.ts";
import { checkoutOf, HERE } from "./against/checkout.ts";
import { type PreloadedGateway, startPreloaded } from "./support/preloaded.ts";
import { startServer } from "./support/process.ts";
import { type Rounds, roundsOf, writeResults } from "./support/results.ts";

/** Turns of each call and gateway in a round. */
const TURNS = 4;

const USAGE = {
  bound: { type: "string", default: "1.25" },
  /** Starts of both gateways: two processes of one revision differ by up to a tenth as long as they live. */
  rounds: { type: "string", default: "3" },
  /** Further rounds only as long as a call is above the bound. */
  "stop-early": { type: "boolean", default: false },
} as const;

type Gateway = PreloadedGateway<number>;

/** The figures of a call in microseconds of computing, and the working tree's as a multiple of the revision's, turn by turn. */
interface Figures {
  readonly before: number[];
  readonly now: number[];
  readonly ratios: number[];
}

/**
 * Compares a revision with the working tree: `REV [--bound NUMBER] [--rounds NUMBER] [--stop-early]`. Exits with 1 if the median of a call
 * exceeds the bound.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args: [...args], options: USAGE, allowPositionals: true });
  const [revision] = positionals;
  const bound = Number(values.bound);
  if (revision === undefined || !(bound > 0))
    throw new Error("usage: against REV [--bound NUMBER] [--rounds NUMBER] [--stop-early]");
  const { commit, folder } = checkoutOf(revision);
  const enough = (figures: Readonly<Record<string, Figures>>) =>
    values["stop-early"] && Object.values(figures).every(({ ratios }) => roundsOf(ratios).median <= bound);
  const figures = await measureAll([folder, HERE], Number(values.rounds), enough);
  const results = Object.entries(figures).map(([call, { before, now, ratios }]) => ({
    call,
    before: roundsOf(before),
    now: roundsOf(now),
    ratio: roundsOf(ratios),
  }));
  console.log(`| Call | ${commit}, µs | now, µs | ratio |\n| --- | --- | --- | --- |`);
  for (const { call, before, now, ratio } of results) {
    console.log(`| ${call} | ${shown(before, 1)} | ${shown(now, 1)} | ${shown(ratio, 2)} |`);
  }
  console.log(`\nThe turns are in ${writeResults("against", { against: commit, results })}`);
  const slower = results.filter(({ ratio }) => ratio.median > bound);
  for (const { call, ratio } of slower)
    console.error(`${call}: ${ratio.median.toFixed(2)} is above ${bound}`);
  process.exit(slower.length > 0 ? 1 : 0);
}

async function measureAll(
  checkouts: readonly [string, string],
  rounds: number,
  enough: (figures: Readonly<Record<string, Figures>>) => boolean,
): Promise<Record<string, Figures>> {
  const figures: Record<string, Figures> = {};
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const rest = await startServer("proxy/upstream.ts", "0");
  const grpc = await startServer("wires/gateway.ts");
  try {
    for (let round = 0; round < rounds; round++) {
      await withGateways(
        checkouts,
        (side) => ["--root", join(folder, `${round}-${side}`)],
        async (gateways) => {
          await Promise.all(gateways.map(({ port }) => prepareCatalog(port)));
          for (const [call, load] of Object.entries(DIRECTORY_LOADS)) await measure(call, load, gateways);
        },
      );
      const uri = `http://127.0.0.1:${rest.port}`;
      await withGateways(
        checkouts,
        () => ["--backend", "rest", "--uri", uri],
        (gateways) => measure("describe, REST to REST", DESCRIBE_BY_REST, gateways),
      );
      const address = `127.0.0.1:${grpc.port}`;
      await withGateways(
        checkouts,
        () => ["--backend", "grpc", "--address", address],
        (gateways) => measure("describe, gRPC to gRPC", DESCRIBE_BY_GRPC, gateways),
      );
      if (enough(figures)) break;
    }
  } finally {
    await Promise.all([rest.stop(), grpc.stop(), rm(folder, { recursive: true, force: true })]);
  }
  return figures;

  /** Both gateways have each turn next to each other, and take turns in who begins. */
  async function measure(call: string, load: Load, gateways: readonly Gateway[]) {
    figures[call] ??= { before: [], now: [], ratios: [] };
    const { before, now, ratios } = figures[call];
    await warmUp(load, gateways);
    for (let turn = 0; turn < TURNS; turn++) {
      const micros: number[] = [];
      for (const side of turn % 2 === 0 ? [0, 1] : [1, 0]) {
        micros[side] = await microsOf(gateways[side] as Gateway, load);
      }
      const [first, second] = micros as [number, number];
      before.push(first);
      now.push(second);
      ratios.push(second / first);
    }
  }
}

/** Starts a gateway of each checkout for the time of some work. */
async function withGateways(
  checkouts: readonly string[],
  backend: (side: number) => readonly string[],
  work: (gateways: readonly Gateway[]) => Promise<void>,
): Promise<void> {
  const gateways: Gateway[] = [];
  try {
    for (const [side, checkout] of checkouts.entries()) {
      gateways.push(await startPreloaded(checkout, "against/cpu.ts", backend(side)));
    }
    await work(gateways);
  } finally {
    for (const { stop } of gateways) await stop();
  }
}

/** Warms gateways up in turn: one that waits for long would collect its garbage and drop its compiled code. */
async function warmUp({ run, warm }: Load, gateways: readonly Gateway[]): Promise<void> {
  const calls = gateways.map(() => 0);
  while (Math.min(...calls) < warm) {
    for (const [at, { port }] of gateways.entries()) calls[at] = (calls[at] ?? 0) + (await run(port));
  }
}

async function microsOf({ port, figures }: Gateway, { run, turn }: Load): Promise<number> {
  const before = await figures();
  let calls = 0;
  while (calls < turn) calls += await run(port);
  return ((await figures()) - before) / calls;
}

function shown({ median, min, max }: Rounds, digits: number): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}
