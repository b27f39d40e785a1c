// Does what a newcomer does in the first ten minutes, from a clone of this repository: npm start, a file dropped on the
// console, a search, a call over gRPC, and a dashboard that Prometheus answers. It needs git, Chromium, Go and Prometheus.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { grpcurlFolder } from "../test/clients/support/grpcurl.ts";
import { freePort } from "../test/support/free-port.ts";
import { importAndSearch, ROWS, TABLE } from "./newcomer/console.ts";
import { queryDashboards } from "./newcomer/prometheus.ts";

const LIMIT_MS = 10 * 60_000;
const ROOT = join(import.meta.dirname, "..");

const started = performance.now();
const folder = mkdtempSync(join(tmpdir(), "lance-gateway-newcomer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
setTimeout(() => fail("it took more than ten minutes"), LIMIT_MS).unref();

const clone = join(folder, "lance-gateway");
const address = `127.0.0.1:${await freePort()}`;
const uri = `http://${address}`;

await step("clone", () => run("git", ["clone", "--quiet", ROOT, clone]));
await step("npm start, until the console is there", startGateway);
await step("drop a file on the console, and search in its rows", () => importAndSearch(uri));
// It is a tool that a newcomer already has.
const tools = await grpcurlFolder();
await step("call over gRPC", countByGrpc);
await step("the dashboard, by Prometheus", () => queryDashboards(address, folder));
console.log(`a newcomer is there after ${secondsSince(started)} s`);
process.exit(0);

async function step(name: string, work: () => unknown): Promise<void> {
  const begun = performance.now();
  await work();
  console.log(`${secondsSince(begun).padStart(6)} s  ${name}`);
}

/** Starts the gateway of the clone as the README says, with the environment of somebody who runs nothing else. */
async function startGateway(): Promise<void> {
  const isOurs = (name: string) => /^(npm_|NODE_|LANCE_GATEWAY_|INIT_CWD)/.test(name);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOurs(name)));
  const port = new URL(uri).port;
  const child = spawn("npm", ["start", "--", "--port", port], {
    cwd: clone,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  child.on("exit", (code) => fail(`npm start ended with code ${code}`));
  process.on("exit", () => {
    child.removeAllListeners("exit");
    child.kill("SIGTERM");
  });
  const hasConsole = async () =>
    (await fetch(`${uri}/console/`).catch(() => undefined))?.headers
      .get("content-type")
      ?.startsWith("text/html") === true;
  while (!(await hasConsole())) await sleep(100);
}

function countByGrpc(): void {
  const method = "lance.namespace.v1.LanceNamespaceService/CountTableRows";
  const request = JSON.stringify({ id: [TABLE] });
  const answer = run(join(tools, "grpcurl"), ["-plaintext", "-d", request, address, method]);
  const { count } = JSON.parse(answer) as { count?: string };
  if (count !== String(ROWS)) fail(`gRPC counts ${count} rows of ${ROWS}`);
}

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function secondsSince(moment: number): string {
  return ((performance.now() - moment) / 1000).toFixed(1);
}

function fail(reason: string): never {
  console.error(`newcomer: ${reason}`);
  process.exit(1);
}
