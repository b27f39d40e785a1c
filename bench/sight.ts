// The cost of metrics, of the access log and of traces: describe on equal roots with more and more of it, in turn.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { send } from "./data/client.ts";
import { computedSeconds } from "./support/cpu.ts";
import { runLightLoad } from "./support/light-load.ts";
import { startGateway } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const ROUNDS = 5;
/** Load before each measurement, in seconds: V8 compiles for more than 60,000 calls. */
const WARM_SECONDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
const TABLES = 100;
const PATHS = Array.from({ length: TABLES }, (_, number) => `/v1/table/t${number}/describe`);

interface Side {
  readonly name: string;
  readonly args: readonly string[];
  readonly traces?: boolean;
  readonly rates: number[];
  readonly micros: number[];
}

/** Runs the comparison; takes no options. */
export async function run(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const collector = createServer((request, response) => request.resume().on("end", () => response.end()));
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const access = ["--access-log", join(folder, "access.jsonl")];
  const sides: readonly Side[] = [
    { name: "neither metrics nor access log", args: ["--no-metrics"], rates: [], micros: [] },
    { name: "metrics", args: [], rates: [], micros: [] },
    { name: "metrics, access log", args: access, rates: [], micros: [] },
    { name: "metrics, access log, every trace", args: access, traces: true, rates: [], micros: [] },
  ];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        // The gateway reads the variable when it starts.
        if (side.traces) process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint;
        await measure(side, join(folder, `${round}-${sides.indexOf(side)}`));
        delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
      }
    }
    print(sides);
  } finally {
    collector.closeAllConnections();
    collector.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Measures a gateway of its own: two processes with the same options differ by up to a tenth as long as they live. */
async function measure({ args, rates, micros }: Side, root: string): Promise<void> {
  const { port, pid, stop } = await startGateway("--root", root, ...args);
  try {
    for (let number = 0; number < TABLES; number++) await send(port, `table/t${number}/declare`, {});
    const load = (seconds: number) =>
      runLightLoad({ port, method: "POST", paths: PATHS, body: "{}", connections: CONNECTIONS, seconds });
    await load(WARM_SECONDS);
    const before = computedSeconds(pid);
    const rate = await load(SECONDS);
    rates.push(Math.round(rate));
    micros.push(Math.round(((computedSeconds(pid) - before) * 1e7) / (rate * SECONDS)) / 10);
  } finally {
    await stop();
  }
}

function print(sides: readonly Side[]): void {
  console.log(`describe, REST, ${CONNECTIONS} connections: median (least to most) of ${ROUNDS} rounds`);
  for (const { name, rates, micros } of sides) {
    const [rate, cpu] = [roundsOf(rates), roundsOf(micros)];
    console.log(
      `  ${name}: ${rate.median} calls/s (${rate.min} to ${rate.max}), ${cpu.median} µs of computing (${cpu.min} to ${cpu.max})`,
    );
  }
}
