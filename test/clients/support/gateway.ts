import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { MAIN, NODE } from "../../support/node-command.ts";

/** A gateway in a process of its own, as a user starts it. */
export interface GatewayProcess {
  /** `host:port`, for gRPC. */
  readonly address: string;
  /** The base of the REST API. */
  readonly uri: string;
  readonly root: string;
  /** The directory that holds the manifest and the tables. */
  readonly base: string;
  readonly process: ChildProcess;
  /** The lines of its log so far. */
  readonly log: readonly string[];
  /** Ends it by SIGTERM and removes its directory. */
  close(): Promise<void>;
}

/**
 * Starts `lance-gateway serve` on a free port over an empty directory, and waits until it listens.
 *
 * @param args further flags; a `--root`, a `--config` or a `--uri` among them replaces the directory
 */
export async function startGateway(...args: readonly string[]): Promise<GatewayProcess> {
  const root = mkdtempSync(join(tmpdir(), "lance-gateway-clients-"));
  const [node, ...flags] = NODE;
  const own = args.includes("--config") || args.includes("--uri") ? [] : ["--root", root];
  const child = spawn(node, [...flags, MAIN, "serve", "--port", "0", ...own, ...args], {
    env: { ...process.env, LANCE_GATEWAY_DRAIN_DELAY: "0s" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = collectLines(child.stderr);
  const uri = await readUri(child);
  return {
    uri,
    log,
    address: new URL(uri).host,
    root,
    base: join(root, "data"),
    process: child,
    async close() {
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await once(child, "exit");
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Collects the lines of a stream, which also go to the test's own output. */
function collectLines(stream: Readable): readonly string[] {
  const lines: string[] = [];
  createInterface({ input: stream }).on("line", (line) => {
    lines.push(line);
    process.stderr.write(`${line}\n`);
  });
  return lines;
}

async function readUri(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess["stdout"]> });
  for await (const line of lines) {
    const uri = /^\s*REST\s+(http:\/\/\S+)\/v1\s*$/.exec(line)?.[1];
    if (uri !== undefined) return uri;
  }
  throw new Error("the gateway ended before it listened");
}
