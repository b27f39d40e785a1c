import { pino } from "pino";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";
import { contractSuite } from "./suite.ts";

const limits = { maxUploadBytes: 2 ** 26 };

contractSuite("a REST upstream", {
  async open() {
    const upstream = await startDirectoryServer();
    const uri = `http://127.0.0.1:${upstream.port}`;
    const backend = await createRestBackend({ uri, log: pino({ level: "silent" }) });
    return {
      client: createCaller({ backend, limits }),
      async close() {
        await backend.close();
        await upstream.close();
      },
    };
  },
});
