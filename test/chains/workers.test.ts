import { pino } from "pino";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { contractSuite } from "../contract/suite.ts";
import { createCaller } from "../support/caller.ts";
import type { LanceClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";

const limits = { maxUploadBytes: 2 ** 26 };

/** Number of clients that take turns, each with connections of its own, so that all workers get calls. */
const CLIENTS = 8;

contractSuite("a gateway with workers, which take turns", {
  async open() {
    const directory = await temporaryDirectory();
    const program = startProgram("serve", "--root", directory.path, "--port", "0", "--workers", "2");
    const uri = `http://127.0.0.1:${await program.listening()}`;
    const backends = await Promise.all(
      Array.from({ length: CLIENTS }, () => createRestBackend({ uri, log: pino({ level: "silent" }) })),
    );
    return {
      client: inTurn(backends.map((backend) => createCaller({ backend, limits }))),
      async close() {
        for (const backend of backends) await backend.close();
        program.child.kill("SIGTERM");
        await program.ended;
        await directory.remove();
      },
    };
  },
});

/** Returns a client whose calls go through each of the clients in turn. */
function inTurn(clients: readonly LanceClient[]): LanceClient {
  let calls = 0;
  return new Proxy({} as LanceClient, {
    get: (_, operation: keyof LanceClient) => clients[calls++ % clients.length]?.[operation],
  });
}
