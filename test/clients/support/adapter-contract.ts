import { pino } from "pino";
import { createRestBackend } from "../../../src/backends/rest/index.ts";
import { contractSuite } from "../../contract/suite.ts";
import { createCaller } from "../../support/caller.ts";
import { startRestAdapter } from "./rest-adapter.ts";

const limits = { maxUploadBytes: 2 ** 26 };

contractSuite("the Rust adapter, through the REST backend", {
  async open() {
    const adapter = await startRestAdapter();
    const backend = await createRestBackend({ uri: adapter.uri, log: pino({ level: "silent" }) });
    return {
      client: createCaller({ backend, limits }),
      async close() {
        await backend.close();
        await adapter.close();
      },
    };
  },
});
