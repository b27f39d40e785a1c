import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "../../support/free-port.ts";
import { untilListening } from "./store-servers.ts";

/** A server of the Redis protocol. */
export interface RedisServer {
  readonly port: number;
  /** Ends it at once; what it has kept is gone. */
  stop(): Promise<void>;
}

/** Settings of {@link startRedis}, as in the server's own configuration. */
export interface RedisSettings {
  /** Default: a free one. */
  readonly port?: number;
  /** Further arguments, such as `--requirepass`. */
  readonly args?: readonly string[];
  /** Whether its port speaks TLS; the arguments have the files then. Default: false. */
  readonly tls?: boolean;
}

/** Starts the Redis or Valkey of the machine, which keeps nothing on disk. */
export async function startRedis({ port, args = [], tls = false }: RedisSettings = {}): Promise<RedisServer> {
  const chosen = port ?? (await freePort());
  const directory = mkdtempSync(join(tmpdir(), "lance-gateway-redis-"));
  const ports = tls ? ["--port", "0", "--tls-port", String(chosen)] : ["--port", String(chosen)];
  const place = ["--bind", "127.0.0.1", "--dir", directory, "--save", "", "--appendonly", "no"];
  const child = spawn(findServer(), [...ports, ...place, ...args], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await untilListening(chosen, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port: chosen, stop };
}

function findServer(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  for (const name of ["redis-server", "valkey-server"]) {
    const found = folders.map((folder) => join(folder, name)).find(isProgram);
    if (found !== undefined) return found;
  }
  throw new Error(
    "these tests need redis-server or valkey-server, for example from apt-get install redis-server",
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
