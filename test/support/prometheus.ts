import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { freePort } from "./free-port.ts";

const SHIPPED = join(import.meta.dirname, "../../deploy/prometheus");

/** An answer of Prometheus's HTTP API. */
export interface PrometheusAnswer {
  readonly status: "success" | "error";
  readonly error?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the path.
  readonly data: any;
}

/** A running Prometheus. */
export interface Prometheus {
  /** Asks its HTTP API, such as `query` or `alerts`. */
  get(path: string, parameters?: Readonly<Record<string, string>>): Promise<PrometheusAnswer>;
  close(): Promise<void>;
}

/**
 * Starts Prometheus with the shipped configuration and alerts. Only times differ: it scrapes and evaluates each second, and alerts
 * fire without a delay. Targets are at fixed addresses, because nothing resolves their name here.
 *
 * @param targets `host:port` of gateways.
 */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-prometheus-"));
  await cp(SHIPPED, folder, { recursive: true });
  await rewrite(join(folder, "prometheus.yaml"), (config) => {
    Object.assign(config.global, { scrape_interval: "1s", evaluation_interval: "1s" });
    for (const job of config.scrape_configs) {
      delete job.dns_sd_configs;
      job.static_configs = [{ targets }];
    }
  });
  await rewrite(join(folder, "alerts.yaml"), ({ groups }) => {
    for (const { rules } of groups) for (const rule of rules) delete rule.for;
  });
  const port = await freePort();
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const ended = once(child, "exit");
  const base = `http://127.0.0.1:${port}`;
  while (!(await isReady(base))) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with code ${child.exitCode}`);
    await sleep(100);
  }
  return {
    async get(path, parameters = {}) {
      const response = await fetch(`${base}/api/v1/${path}?${new URLSearchParams(parameters)}`);
      return (await response.json()) as PrometheusAnswer;
    },
    async close() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the files of Prometheus are data here.
async function rewrite(file: string, change: (content: any) => void): Promise<void> {
  const content = parse(await readFile(file, "utf8"));
  change(content);
  await writeFile(file, stringify(content));
}

async function isReady(base: string): Promise<boolean> {
  const response = await fetch(`${base}/-/ready`).catch(() => undefined);
  await response?.arrayBuffer();
  return response?.ok ?? false;
}
