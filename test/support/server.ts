import { join } from "node:path";
import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { type GatewayContext, serveBackend, type WireOptions } from "../../src/gateway/compose.ts";
import type { NameRule } from "../../src/namespace/identifier.ts";
import type { Backend, LanceNamespace } from "../../src/namespace/lance-namespace.ts";
import { temporaryDirectory } from "./directory.ts";

const MIB = 1024 * 1024;

/** Limits that no test reaches by accident, and a port that the system chooses. */
const OPTIONS: WireOptions = {
  host: "127.0.0.1",
  port: 0,
  maxMessageBytes: 16 * MIB,
  maxUploadBytes: 256 * MIB,
  maxBufferedBytes: 512 * MIB,
  drainSeconds: 0,
};

/** A whole gateway in this process, on its own port. */
export interface TestServer {
  readonly port: number;
  /** Ends the gateway and cuts off running calls, unless the options give them time. */
  close(): Promise<void>;
}

/** Starts a gateway with every wire over any backend; closing it closes the backend too. */
export async function startServer(
  backend: Backend,
  options: Partial<WireOptions> = {},
  context: Partial<GatewayContext> = {},
): Promise<TestServer> {
  const { address, close } = await serveBackend(
    backend,
    { ...OPTIONS, ...options },
    { log: pino({ level: "silent" }), ...context },
  );
  return {
    port: address.port,
    async close() {
      await close();
    },
  };
}

/** A gateway over its own directory. */
export interface DirectoryServer extends TestServer {
  readonly root: string;
  /** The directory of the manifest and the tables. */
  readonly base: string;
}

/**
 * Starts a gateway over a new directory, which closing it removes.
 *
 * @param names rule for the names of new objects. Default: the specification's.
 */
export async function startDirectoryServer(
  options: Partial<WireOptions> = {},
  context: Partial<GatewayContext> = {},
  names?: NameRule,
): Promise<DirectoryServer> {
  const { path: root, remove } = await temporaryDirectory();
  const backend = await createDirectoryBackend({ root, names, log: pino({ level: "silent" }) });
  const server = await startServer(backend, options, context);
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

/** Creates a backend with just the given operations. */
export function fakeBackend(operations: Partial<LanceNamespace>): Backend {
  return { name: "fake", operations, ready: async () => true, close: async () => {} };
}
