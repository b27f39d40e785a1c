import { join } from "node:path";
import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { serveBackend, type WireOptions } from "../../src/gateway/compose.ts";
import type { Backend, LanceNamespace } from "../../src/namespace/lance-namespace.ts";
import { temporaryDirectory } from "./directory.ts";

const MIB = 1024 * 1024;

/** Bounds that no test reaches by accident, and a port of the system's choice. */
const OPTIONS: WireOptions = {
  host: "127.0.0.1",
  port: 0,
  maxMessageBytes: 16 * MIB,
  maxUploadBytes: 256 * MIB,
  maxBufferedBytes: 512 * MIB,
  drainSeconds: 0,
};

/** A whole gateway in this process, on a port of its own. */
export interface TestServer {
  readonly port: number;
  /** Cuts off what still runs, unless the options give it time. */
  close(): Promise<void>;
}

/** Starts a gateway, every wire of it, over any backend; closing it closes the backend too. */
export async function startServer(backend: Backend, options: Partial<WireOptions> = {}): Promise<TestServer> {
  const { address, close } = await serveBackend(
    backend,
    { ...OPTIONS, ...options },
    { log: pino({ level: "silent" }) },
  );
  return {
    port: address.port,
    async close() {
      await close();
    },
  };
}

/** A gateway over a directory of its own. */
export interface DirectoryServer extends TestServer {
  readonly root: string;
  /** Where the manifest and the tables lie. */
  readonly base: string;
}

/** Starts a gateway over a fresh directory, which goes away with it. */
export async function startDirectoryServer(options: Partial<WireOptions> = {}): Promise<DirectoryServer> {
  const { path: root, remove } = await temporaryDirectory();
  const backend = await createDirectoryBackend({ root, log: pino({ level: "silent" }) });
  const server = await startServer(backend, options);
  return {
    root,
    base: join(root, "data"),
    port: server.port,
    async close() {
      await server.close();
      await remove();
    },
  };
}

/** A backend of just the given operations. */
export function fakeBackend(operations: Partial<LanceNamespace>): Backend {
  return { name: "fake", operations, ready: async () => true, close: async () => {} };
}
