import assert from "node:assert/strict";
import { join } from "node:path";
import type { ProtocolClient } from "../../support/client.ts";
import { temporaryDirectory } from "../../support/directory.ts";
import { createGrpcClient } from "../../support/grpc-client.ts";
import { startProgram, troublesIn } from "../../support/program.ts";

/** Several gateways on one root. */
export interface Gateways {
  /** A client for each worker of each gateway, in their order; a connection stays with its worker. */
  readonly clients: readonly ProtocolClient[];
  /** Ends the gateways and removes the root. @throws AssertionError if a gateway has logged a warning or an error */
  close(): Promise<void>;
}

/** Starts gateways on a new root. @param workers the number of workers of each */
export async function startGateways(workers: readonly number[]): Promise<Gateways> {
  const directory = await temporaryDirectory();
  const options = ["--root", join(directory.path, "root"), "--port", "0", "--log-level", "error"];
  const programs = workers.map((count) => startProgram("serve", ...options, "--workers", String(count)));
  const ports = await Promise.all(programs.map((program) => program.listening()));
  const clients = ports.flatMap((port, at) =>
    Array.from({ length: workers[at] ?? 1 }, () => createGrpcClient(port)),
  );
  return {
    clients,
    async close() {
      for (const client of clients) client.close();
      for (const { child } of programs) child.kill("SIGTERM");
      const endings = await Promise.all(programs.map(({ ended }) => ended));
      await directory.remove();
      for (const { stderr } of endings)
        assert.deepEqual(troublesIn(stderr), [], "a gateway has logged an error");
    },
  };
}
