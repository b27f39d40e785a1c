import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { request } from "undici";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { ROOT, runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { allEnded, processTree } from "../support/processes.ts";
import { until } from "../support/until.ts";

/** A Ray head with workers on this machine. */
export interface RayHead {
  /** Address of the jobs API. */
  readonly address: string;
  readonly tokenFile: string;
  /** Returns the answer of the jobs API to a request. */
  ask(path: string): Promise<string>;
  /** The process ids of everything that it runs. */
  processes(): Promise<readonly number[]>;
  /** Kills everything that it runs, and starts another head at the same address. */
  replace(): Promise<void>;
  close(): Promise<void>;
}

/** How often a head is started: its raylet ends when an agent takes longer than 15 seconds, which no option changes. */
const ATTEMPTS = 5;
const TOKEN = "a-token-of-a-test-with-enough-characters";

/** The interpreter with Ray and the driver of the gateway, which is installed again when its sources have changed. */
export async function rayInterpreter(): Promise<string> {
  const python = pythonInterpreter("ray");
  const installed = join(dirname(python), "driver.sha256");
  const wanted = hashOfDriver();
  if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return python;
  // A build leaves files in the folder.
  const copy = mkdtempSync(join(tmpdir(), "lg-"));
  cpSync(join(ROOT, "python"), copy, { recursive: true });
  await runTool(python, ["-m", "pip", "install", "--quiet", "--no-deps", copy]);
  rmSync(copy, { recursive: true, force: true });
  writeFileSync(installed, wanted);
  return python;
}

function hashOfDriver(): string {
  const folder = join(ROOT, "python");
  const hash = createHash("sha256");
  for (const name of globSync("{pyproject.toml,lance_gateway_ray/**/*.py}", { cwd: folder }).sort())
    hash.update(`${name}\0`).update(readFileSync(join(folder, name)));
  return hash.digest("hex");
}

/**
 * Starts a head with a dashboard on loopback. Its files are in a directory of its own, whose path must be short for Ray's sockets.
 *
 * @param cpu the only processor that it uses. Default: all of them.
 */
export async function startRayHead(python: string, cpu?: number): Promise<RayHead> {
  const directory = mkdtempSync(join(tmpdir(), "lg-"));
  const tokenFile = join(directory, "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const ports = await Promise.all(Array.from({ length: 7 }, () => freePort()));
  const [port, dashboard, client, agent, ...ofAgents] = ports;
  const bin = dirname(python);
  const flags = (files: string) => [
    ...["start", "--head", "--block", "--num-cpus", "2", "--node-ip-address", "127.0.0.1"],
    ...["--port", `${port}`, "--dashboard-port", `${dashboard}`, "--ray-client-server-port", `${client}`],
    ...["--dashboard-agent-listen-port", `${agent}`, "--include-dashboard", "true"],
    ...["--dashboard-host", "127.0.0.1", "--temp-dir", join(directory, files)],
    ...["--dashboard-agent-grpc-port", `${ofAgents[0]}`, "--runtime-env-agent-port", `${ofAgents[1]}`],
    ...["--metrics-export-port", `${ofAgents[2]}`],
    // The other ports must not be among those of the workers.
    ...["--min-worker-port", "0", "--max-worker-port", "0"],
    ...["--object-store-memory", String(120 * 2 ** 20), "--disable-usage-stats"],
  ];
  const under = cpu === undefined ? [] : ["taskset", "--cpu-list", `${cpu}`];
  const run = (files: string) => {
    const [program, ...args] = [...under, join(bin, "ray"), ...flags(files)] as const;
    return spawn(program as string, args, {
      env: {
        ...process.env,
        PATH: `${bin}:${process.env["PATH"]}`,
        RAY_AUTH_MODE: "token",
        RAY_AUTH_TOKEN_PATH: tokenFile,
        // Other work on the machine makes the start slow.
        RAY_raylet_start_wait_time_s: "120",
        // Workers of the default niceness get no turns on a machine with other work.
        RAY_worker_niceness: "0",
      },
      stdio: "ignore",
    });
  };
  const address = `http://127.0.0.1:${dashboard}`;
  const ask = async (path: string) => {
    const answer = await fetch(`${address}/api/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
    return answer.text();
  };
  const isHealthy = async (url: string) => {
    // It refuses requests with the headers of a browser, which `fetch` sends.
    const answer = await request(url).catch(() => undefined);
    await answer?.body.dump();
    return answer?.statusCode === 200;
  };
  // Jobs need the agent, which starts later than the dashboard.
  const answers = async () =>
    (await ask("version").catch(() => "")).includes("ray_version") &&
    isHealthy(`http://127.0.0.1:${agent}/api/local_raylet_healthz`);
  let count = 0;
  let child: ChildProcess;
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const start = async () => {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      child = run(String(count++));
      await until(async () => hasEnded() || (await answers()));
      if (!hasEnded()) return;
    }
    throw new Error(`Ray has not started in ${ATTEMPTS} attempts`);
  };
  const processes = () => processTree(child.pid as number);
  const replace = async () => {
    const all = await processes();
    killAll(all);
    await allEnded(all);
    await start();
  };
  const close = async () => {
    const all = await processes();
    child.kill("SIGTERM");
    const killing = setTimeout(() => killAll(all), 15_000);
    await allEnded(all);
    clearTimeout(killing);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return { address, tokenFile, ask, processes, replace, close };
}

function killAll(ids: readonly number[]): void {
  for (const id of ids) {
    try {
      process.kill(id, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}
