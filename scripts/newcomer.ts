// Does what a newcomer does in the first ten minutes, from a clone of this repository: npm start, a look around, a file
// dropped on the console, a search, a call over gRPC, charts that Prometheus answers, and Ctrl-C. It checks how long a
// start takes, how much it installs, and what it says. It needs git, Chromium, Go and Prometheus.
import { type ExecFileSyncOptions, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { grpcurlFolder } from "../test/clients/support/grpcurl.ts";
import { freePort } from "../test/support/free-port.ts";
import { importAndSearch, ROWS, TABLE } from "./newcomer/console.ts";
import { answerQueries } from "./newcomer/prometheus.ts";
import { cleanEnvironment, serveOnTerminal, startByNpm } from "./newcomer/server.ts";

const LIMIT_MS = 10 * 60_000;
/**
 * Longest time from `npm start` to the console, in seconds, on a machine of two cores that does nothing else and has the
 * packages in npm's cache.
 */
const START_SECONDS = Number(process.env["NEWCOMER_START_SECONDS"] ?? 25);
/** Longest time from Ctrl-C to the end, in seconds, while nothing is in flight. */
const END_SECONDS = 3;
/** Maximum number of lines of the help of a command. */
const HELP_LINES = 30;
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
  await step("clone", () => run("git", ["clone", "--quiet", ROOT, clone]));
  const server = await step(
    "npm start, until the console is there",
    () => startByNpm(clone, address),
    START_SECONDS,
  );
  servers.use(server);
  checkSize(join(clone, "node_modules"));
  checkText("npm start", server.output(), [
    /Installing what serving needs/,
    /\d+ MB, \d+ s: installed/,
    ...[`http://${address}/v1`, "everyone who reaches the port"],
  ]);
  await step("curl /", async () => {
    const text = await (await fetch(`http://${address}/`)).text();
    checkText("curl /", text, ["/v1", "/docs", "/console/", "/metrics"]);
  });
  await step("the command of the tutorials", () => {
    const lg = ["run", "--silent", "lg", "--", "ls", "--uri", `http://${address}`];
    run("npm", lg, { cwd: clone, env: cleanEnvironment() });
  });
  await step("the program of the package", () => {
    const version = run("npx", ["lance-gateway", "--version"], { cwd: clone, env: cleanEnvironment() });
    checkText("npx lance-gateway --version", version, [/^\d+\.\d+\.\d+\n$/]);
    const help = run("npx", ["lance-gateway", "--help"], { cwd: clone, env: cleanEnvironment() });
    checkText("npx lance-gateway --help", help, ["Examples:", "--help-all"]);
    const lines = help.trimEnd().split("\n").length;
    if (lines > HELP_LINES) throw new Error(`the help has ${lines} lines, more than ${HELP_LINES}`);
  });
  await step("a mistyped directory, on a terminal, and Ctrl-C", () => serveMistyped(clone));
  await step("drop a file on the console, and search in its rows", () =>
    importAndSearch(`http://${address}`),
  );
  await step("call over gRPC", countByGrpc);
  await step("answer the queries of charts by Prometheus", async () => {
    await failOnce();
    await answerQueries(address, folder, servers);
  });
  console.log(`a newcomer is there after ${secondsSince(started)} s`);
  await step("Ctrl-C", () => server[Symbol.asyncDispose](), END_SECONDS);
}
rmSync(folder, { recursive: true });
clearTimeout(limit);

/** Does a step, and fails if it takes longer than it may. */
async function step<T>(name: string, work: () => T, seconds = LIMIT_MS / 1000): Promise<Awaited<T>> {
  const begun = performance.now();
  const result = await work();
  const taken = secondsSince(begun);
  console.log(`${taken.padStart(6)} s  ${name}`);
  if (Number(taken) > seconds) throw new Error(`${name} took ${taken} s, more than ${seconds}`);
  return result;
}

/** Fails when a program does not say something. */
function checkText(name: string, text: string, expected: readonly (string | RegExp)[]): void {
  for (const part of expected)
    if (typeof part === "string" ? !text.includes(part) : !part.test(text))
      throw new Error(`${name} does not say ${part}:\n${text}`);
}

/** Fails when a first start installs more than what serving needs. */
function checkSize(modules: string): void {
  const mib = Number.parseInt(run("du", ["--summarize", "--block-size=1M", modules]), 10);
  console.log(`${String(mib).padStart(6)} MiB in node_modules`);
  if (mib > LIMIT_MIB) throw new Error(`a first start installs ${mib} MiB, more than ${LIMIT_MIB}`);
}

/** Serves a directory that does not exist, on a terminal: its banner has what a newcomer looks for, and no line of it is JSON. */
async function serveMistyped(clone: string): Promise<void> {
  const place = `127.0.0.1:${await freePort()}`;
  const { output, endMs } = await serveOnTerminal(clone, "./lance-dta", place);
  checkText("serve on a terminal", output, [
    ...[/new +\S+lance-dta did not exist, and has been created/, `REST      http://${place}/v1`],
    ...[`console   http://${place}/console/`, `API page  http://${place}/docs`, /manual +\S+/],
  ]);
  if (/^\s*\{/m.test(output)) throw new Error(`a terminal gets lines of JSON:\n${output}`);
  if (endMs > END_SECONDS * 1000) throw new Error(`Ctrl-C took ${Math.round(endMs)} ms`);
}

function countByGrpc(): void {
  const method = "lance.namespace.v1.LanceNamespaceService/CountTableRows";
  const answer = run(grpcurl, ["-plaintext", "-d", JSON.stringify({ id: [TABLE] }), address, method]);
  const { count } = JSON.parse(answer) as { count?: string };
  if (count !== String(ROWS)) throw new Error(`gRPC counts ${count} rows of ${ROWS}`);
}

/** Asks for a table that does not exist: a chart of errors needs an error. */
async function failOnce(): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`http://${address}/v1/table/missing/describe`, { method: "POST", headers, body: "{}" });
}

function run(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string {
  return execFileSync(command, args, {
    ...options,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function secondsSince(moment: number): string {
  return ((performance.now() - moment) / 1000).toFixed(1);
}
