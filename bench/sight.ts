// The cost of metrics, of the access log and of traces: describe on equal roots with more and more of it, in turn.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { send } from "./data/client.ts";
import { computedSeconds } from "./support/cpu.ts";
import { type Figures, type Goal, startFigures } from "./support/figures.ts";
import { runLightLoad } from "./support/light-load.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const USAGE = {
  rounds: { type: "string", default: "5" },
  /** Turns of a second in a round. */
  turns: { type: "string", default: "12" },
  /** Turns of a second before the measurement: V8 compiles for more than 100,000 calls. */
  warm: { type: "string", default: "6" },
} as const;
const CONNECTIONS = 32;
const TABLES = 100;
const PATHS = Array.from({ length: TABLES }, (_, number) => `/v1/table/t${number}/describe`);

const LOAD = { method: "POST", paths: PATHS, body: "{}", connections: CONNECTIONS, seconds: 1 } as const;

interface Side {
  readonly name: string;
  readonly args: readonly string[];
  readonly traces: boolean;
  /** Calls a second and microseconds of computing for a call: of each round, the median turn. */
  readonly rates: number[];
  readonly micros: number[];
  /** Microseconds of a round as a share of those of the first side. */
  readonly shares: number[];
}

/** The side whose costs are bounded. */
const MEASURED = "metrics, access log";

const side = (name: string, args: readonly string[], traces = false): Side => ({
  name,
  args,
  traces,
  rates: [],
  micros: [],
  shares: [],
});

/** Runs the comparison: `[--rounds NUMBER] [--turns NUMBER] [--warm NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { rounds, turns, warm } = parseArgs({ args: [...args], options: USAGE }).values;
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const collector = createServer((request, response) => request.resume().on("end", () => response.end()));
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const access = ["--access-log", join(folder, "access.jsonl")];
  const sides = [
    side("neither metrics nor access log", ["--no-metrics"]),
    side("metrics", []),
    side(MEASURED, access),
    side("metrics, access log, every trace", access, true),
  ];
  try {
    for (let round = 0; round < Number(rounds); round++) {
      const started: ServerProcess[] = [];
      try {
        for (const { args, traces } of sides) {
          // The gateway reads the variable when it starts.
          if (traces) process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint;
          started.push(await startGateway("--root", join(folder, `${round}-${started.length}`), ...args));
          delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
        }
        await measure(sides, started, { count: Number(turns), warm: Number(warm) });
      } finally {
        for (const { stop } of started) await stop();
      }
    }
    return [figuresOf(sides)];
  } finally {
    collector.closeAllConnections();
    collector.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Measures gateways of their own: two processes with the same options differ by up to a tenth as long as they live. They take turns of a
 * second, because the machine's speed changes within seconds.
 */
async function measure(
  sides: readonly Side[],
  servers: readonly ServerProcess[],
  { count, warm }: { readonly count: number; readonly warm: number },
): Promise<void> {
  for (const { port } of servers) {
    for (let number = 0; number < TABLES; number++) await send(port, `table/t${number}/declare`, {});
  }
  const turns = sides.map(() => ({ rates: [] as number[], micros: [] as number[] }));
  const order = [...turns.keys()];
  for (let turn = 0; turn < warm + count; turn++) {
    for (const at of turn % 2 === 0 ? order : order.toReversed()) {
      const { port, pid } = servers[at] as ServerProcess;
      const before = computedSeconds(pid);
      const rate = await runLightLoad({ ...LOAD, port });
      if (turn < warm) continue;
      turns[at]?.rates.push(rate);
      turns[at]?.micros.push(((computedSeconds(pid) - before) * 1e6) / rate);
    }
  }
  const first = roundsOf(turns[0]?.micros ?? []).median;
  for (const [at, { rates, micros }] of turns.entries()) {
    const { median } = roundsOf(micros);
    sides[at]?.rates.push(Math.round(roundsOf(rates).median));
    sides[at]?.micros.push(Math.round(median * 10) / 10);
    sides[at]?.shares.push(Math.round((median / first) * 100));
  }
}

function figuresOf(sides: readonly Side[]): Figures {
  const figures = startFigures(
    `describe, REST, ${CONNECTIONS} connections`,
    "calls/s",
    "µs of CPU",
    "% of the first",
  );
  for (const { name, rates, micros, shares } of sides) {
    const goals: Goal[] = name === MEASURED ? [{ of: roundsOf(shares).median, most: 110, unit: "%" }] : [];
    figures.add([name, roundsOf(rates), roundsOf(micros), roundsOf(shares)], ...goals);
  }
  return figures;
}
