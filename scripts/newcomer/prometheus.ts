import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { METRICS } from "../../src/observability/metrics/declarations.ts";
import { freePort } from "../../test/support/free-port.ts";
import { runServer } from "./server.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const DASHBOARDS = join(ROOT, "deploy", "grafana");
const DOCUMENTED = join(ROOT, "docs", "observability.md");

/** Grafana's own intervals; all other variables are replaced by all values of a label. */
const INTERVALS = /\$(?:__rate_interval|__interval|__range)|\$\{__\w+\}/g;
const WINDOW = "30s";
const VARIABLES = /\$\{\w+(?::\w+)?\}|\$\w+/g;

const METRIC = /\blance_gateway_\w+/g;
/** A tenth of a second each. */
const TRIES = 100;
const HISTOGRAM_SUFFIX = /_(?:bucket|sum|count)$/;

/**
 * Lets a Prometheus of its own read the metrics of a gateway and answer each query of the documentation and the
 * dashboards.
 *
 * @throws Error for a query that Prometheus refuses, that names a metric that the gateway lacks, or that finds nothing
 * although its metrics have values
 */
export async function answerQueries(
  address: string,
  folder: string,
  servers: AsyncDisposableStack,
): Promise<void> {
  const queries = [...documentedQueries(), ...dashboardQueries()];
  const known = new Set<string>(Object.values(METRICS).map(({ name }) => name));
  const unknown = queries.flatMap(metricsIn).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new Error(`no such metrics: ${unknown.join(", ")}`);
  const uri = await startPrometheus(address, folder, servers);
  const rates = `rate(lance_gateway_calls_total[${WINDOW}])`;
  // A rate needs two looks at the metrics.
  while ((await ask(uri, rates)) === 0) await sleep(100);
  for (const query of queries) await untilAnswered(uri, query);
}

/** Waits for an answer: a series that has just begun has no rate before the second look at it. */
async function untilAnswered(uri: string, query: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if ((await ask(uri, query)) > 0) return;
    const hasValues = await Promise.all(metricsIn(query).map((name) => ask(uri, selectorOf(name))));
    if (hasValues.includes(0)) return;
    await sleep(100);
  }
  throw new Error(`nothing for ${query}`);
}

async function startPrometheus(
  address: string,
  folder: string,
  servers: AsyncDisposableStack,
): Promise<string> {
  const host = `127.0.0.1:${await freePort()}`;
  const config = join(folder, "prometheus.json");
  const jobs = [{ job_name: "lance-gateway", static_configs: [{ targets: [address] }] }];
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs: jobs }));
  const data = join(folder, "prometheus");
  const args = [`--config.file=${config}`, `--storage.tsdb.path=${data}`, `--web.listen-address=${host}`];
  const child = spawn("prometheus", args, { stdio: "ignore" });
  const isReady = async () => (await fetch(`http://${host}/-/ready`).catch(() => undefined))?.ok === true;
  servers.use(await runServer(child, isReady));
  return `http://${host}`;
}

/** Returns the number of series of an answer. */
async function ask(uri: string, query: string): Promise<number> {
  const answer = await fetch(`${uri}/api/v1/query?${new URLSearchParams({ query })}`);
  const { status, error, data } = (await answer.json()) as {
    readonly status: string;
    readonly error?: string;
    readonly data?: { readonly result: readonly unknown[] };
  };
  if (status !== "success") throw new Error(`Prometheus refuses ${query}: ${error}`);
  return data?.result.length ?? 0;
}

function documentedQueries(): string[] {
  const [, block = ""] = /^```promql\n(.*?)^```$/ms.exec(readFileSync(DOCUMENTED, "utf8")) ?? [];
  return block.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

function dashboardQueries(): string[] {
  const files = readdirSync(DASHBOARDS, { recursive: true, encoding: "utf8" });
  const dashboards = files.filter((file) => file.endsWith(".json"));
  return dashboards.flatMap((file) => queriesIn(JSON.parse(readFileSync(join(DASHBOARDS, file), "utf8"))));
}

/** Returns the values of all fields `expr`, at any depth, with values in place of Grafana's variables. */
function queriesIn(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([name, value]) =>
    name === "expr"
      ? [String(value).replaceAll(INTERVALS, WINDOW).replaceAll(VARIABLES, ".*")]
      : queriesIn(value),
  );
}

function metricsIn(query: string): string[] {
  return [...query.matchAll(METRIC)].map(([name]) => name.replace(HISTOGRAM_SUFFIX, ""));
}

/** Selects the values of a metric, or those of a histogram. */
function selectorOf(name: string): string {
  return `{__name__=~"${name}(_count)?"}`;
}
