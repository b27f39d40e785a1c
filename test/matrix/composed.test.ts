import { pino } from "pino";
import { createComposedBackend } from "../../src/backends/composed/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { startRowlessServer } from "../support/catalogs/rowless-directory.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { startServer } from "../support/server.ts";
import { JOB_SCENARIOS } from "./job-scenarios.ts";
import { matrixSuite } from "./suite.ts";

const log = pino({ level: "silent" });

/** Jobs are the upstream's, which has no rows, and so are the properties of tables. */
const REFUSED: ReadonlySet<object> = new Set(JOB_SCENARIOS);

matrixSuite(
  "a gateway in front of a catalog, with rows served here",
  async () => {
    const upstream = await startRowlessServer();
    const rest = await createRestBackend({ uri: `http://127.0.0.1:${upstream.port}`, log });
    const server = await startServer(createComposedBackend(rest, { log, allowedLocations: [upstream.root] }));
    const clients = createProtocolClients(server.port);
    return {
      clients,
      async close() {
        for (const { close } of Object.values(clients)) close();
        await server.close();
        await upstream.close();
      },
    };
  },
  (scenario) => !REFUSED.has(scenario) && !scenario.name.includes("and properties"),
);
