import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** A load of repeated requests by h2load, which is written in C and takes less for a request than a program for Node. */
export interface H2Load {
  readonly port: number;
  readonly protocol: "HTTP/1.1" | "HTTP/2";
  readonly method: "GET" | "POST";
  /** Each connection requests them in turn. */
  readonly paths: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Body of each request of the method POST. */
  readonly body: Uint8Array;
  readonly connections: number;
  /** Number of concurrent requests on each connection. */
  readonly concurrency: number;
  readonly seconds: number;
}

/** Answers to a load. */
export interface H2LoadResult {
  /** Answers per second. */
  readonly rate: number;
  /** Number of answers; each of them had the status 2xx. */
  readonly answers: number;
  /** Size of the bodies of all answers, in bytes. */
  readonly bodyBytes: number;
}

const MISSING =
  "this benchmark needs h2load and chrt, for example from apt-get install nghttp2-client util-linux";

/** Exit code of chrt for a program that it cannot find. */
const NOT_FOUND = 127;

/** @throws Error if h2load is not installed, a request failed, or an answer had another status than 2xx. */
export async function runH2load(load: H2Load): Promise<H2LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    const [addresses, body] = [join(folder, "addresses"), join(folder, "body")];
    const lines = load.paths.map((path) => `http://127.0.0.1:${load.port}${path}\n`);
    await Promise.all([writeFile(addresses, lines.join("")), writeFile(body, load.body)]);
    const headers = Object.entries(load.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    return readReport(
      await report([
        ...(load.protocol === "HTTP/1.1" ? ["--h1"] : []),
        ...(load.method === "POST" ? ["-d", body] : []),
        ...["-i", addresses, "-D", String(load.seconds), "-t", "1"],
        ...["-c", String(load.connections), "-m", String(load.concurrency)],
        ...headers,
      ]),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function report(args: readonly string[]): Promise<string> {
  // In this mode of scheduling, an answer that arrives for h2load does not interrupt a gateway that is working on the same core.
  const child = spawn("chrt", ["--batch", "0", "h2load", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const started = once(child, "spawn").catch((cause: unknown) => {
    throw new Error(MISSING, { cause });
  });
  const [, output, [code]] = await Promise.all([started, text(child.stdout), once(child, "close")]);
  if (code === NOT_FOUND) throw new Error(MISSING);
  if (code !== 0) throw new Error(`h2load ended with ${code}: ${output}`);
  return output;
}

function readReport(output: string): H2LoadResult {
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const answers = number(/ (\d+) succeeded,/);
  const failures = [/ (\d+) failed,/, / (\d+) errored,/, / (\d+) timeout/].map(number);
  const statuses = [/ (\d+) 3xx/, / (\d+) 4xx/, / (\d+) 5xx/].map(number);
  // Requests that are on their way at the end have neither succeeded nor failed.
  if (answers === 0 || [...failures, ...statuses].some((count) => count !== 0))
    throw new Error(`h2load had answers other than 2xx: ${output}`);
  return { rate: number(/, ([\d.]+) req\/s/), answers, bodyBytes: number(/\((\d+)\) data/) };
}
