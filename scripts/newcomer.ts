// Does what a newcomer does in the first ten minutes, from a clone of this repository: npm start, a file dropped on the
// console, a search, a call over gRPC, and charts that Prometheus answers. It needs git, Chromium, Go and Prometheus.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { grpcurlFolder } from "../test/clients/support/grpcurl.ts";
import { freePort } from "../test/support/free-port.ts";
import { importAndSearch, ROWS, TABLE } from "./newcomer/console.ts";
import { answerQueries } from "./newcomer/prometheus.ts";
import { startByNpm } from "./newcomer/server.ts";

const LIMIT_MS = 10 * 60_000;
/** Maximum size of what a first start installs, in MiB. */
const LIMIT_MIB = 450;
const ROOT = join(import.meta.dirname, "..");

// A newcomer has it before; it is built here the first time.
const grpcurl = join(await grpcurlFolder(), "grpcurl");
const started = performance.now();
const limit = setTimeout(() => {
  console.error("a newcomer is not there after ten minutes");
  process.exit(1);
}, LIMIT_MS);
const folder = mkdtempSync(join(tmpdir(), "lance-gateway-newcomer-"));
const address = `127.0.0.1:${await freePort()}`;
{
  await using servers = new AsyncDisposableStack();
  const clone = join(folder, "lance-gateway");
  await step("clone", () => run("git", "clone", "--quiet", ROOT, clone));
  await step("npm start, until the console is there", async () => {
    servers.use(await startByNpm(clone, address));
  });
  checkSize(join(clone, "node_modules"));
  await step("drop a file on the console, and search in its rows", () =>
    importAndSearch(`http://${address}`),
  );
  await step("call over gRPC", countByGrpc);
  await step("answer the queries of charts by Prometheus", async () => {
    await failOnce();
    await answerQueries(address, folder, servers);
  });
  console.log(`a newcomer is there after ${secondsSince(started)} s`);
}
rmSync(folder, { recursive: true });
clearTimeout(limit);

async function step(name: string, work: () => unknown): Promise<void> {
  const begun = performance.now();
  await work();
  console.log(`${secondsSince(begun).padStart(6)} s  ${name}`);
}

/** Fails when a first start installs more than what serving needs. */
function checkSize(modules: string): void {
  const mib = Number.parseInt(run("du", "--summarize", "--block-size=1M", modules), 10);
  console.log(`${String(mib).padStart(6)} MiB in node_modules`);
  if (mib > LIMIT_MIB) throw new Error(`a first start installs ${mib} MiB, more than ${LIMIT_MIB}`);
}

function countByGrpc(): void {
  const method = "lance.namespace.v1.LanceNamespaceService/CountTableRows";
  const answer = run(grpcurl, "-plaintext", "-d", JSON.stringify({ id: [TABLE] }), address, method);
  const { count } = JSON.parse(answer) as { count?: string };
  if (count !== String(ROWS)) throw new Error(`gRPC counts ${count} rows of ${ROWS}`);
}

/** Asks for a table that does not exist: a chart of errors needs an error. */
async function failOnce(): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`http://${address}/v1/table/missing/describe`, { method: "POST", headers, body: "{}" });
}

function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function secondsSince(moment: number): string {
  return ((performance.now() - moment) / 1000).toFixed(1);
}
