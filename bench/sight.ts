// The cost of metrics, of the access log and of traces: describe on equal roots with more and more of it, in turn.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { computedSeconds } from "./support/cpu.ts";
import { runLightLoad } from "./support/light-load.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
const TABLES = 100;
const PATHS = Array.from({ length: TABLES }, (_, number) => `/v1/table/t${number}/describe`);

interface Side {
  readonly name: string;
  readonly server: ServerProcess;
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
  const sides: Side[] = [];
  try {
    sides.push(await startSide(folder, "neither metrics nor access log", ["--no-metrics"]));
    sides.push(await startSide(folder, "metrics", []));
    sides.push(await startSide(folder, "metrics, access log", access));
    // The gateway reads the variable when it starts.
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint;
    sides.push(await startSide(folder, "metrics, access log, every trace", access));
    for (let round = 0; round <= ROUNDS; round++) for (const side of sides) await load(side, round === 0);
    print(sides);
  } finally {
    delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
    await Promise.all(sides.map(({ server }) => server.stop()));
    collector.closeAllConnections();
    collector.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function startSide(folder: string, name: string, args: readonly string[]): Promise<Side> {
  const server = await startGateway("--root", join(folder, name.replaceAll(/\W/g, "-")), ...args);
  for (const path of PATHS) {
    const url = `http://127.0.0.1:${server.port}${path.replace("describe", "declare")}`;
    const headers = { "content-type": "application/json" };
    await (await fetch(url, { method: "POST", headers, body: "{}" })).arrayBuffer();
  }
  return { name, server, rates: [], micros: [] };
}

/** Calls one side for a while. The first round is for the compiler. */
async function load({ server: { port, pid }, rates, micros }: Side, warmsUp: boolean): Promise<void> {
  const before = computedSeconds(pid);
  const rate = await runLightLoad({
    ...{ port, method: "POST", paths: PATHS, body: "{}" },
    ...{ connections: CONNECTIONS, seconds: SECONDS },
  });
  if (warmsUp) return;
  rates.push(Math.round(rate));
  micros.push(Math.round(((computedSeconds(pid) - before) * 1e6) / (rate * SECONDS)));
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
