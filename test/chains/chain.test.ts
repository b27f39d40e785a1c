import { pino } from "pino";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { contractSuite } from "../contract/suite.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer, startServer } from "../support/server.ts";

const limits = { maxUploadBytes: 2 ** 26 };
const log = pino({ level: "silent" });

contractSuite("a REST upstream behind another gateway", {
  async open() {
    const directory = await startDirectoryServer();
    const between = await startServer(
      await createRestBackend({ uri: `http://127.0.0.1:${directory.port}`, delimiter: "~~", log }),
    );
    const backend = await createRestBackend({ uri: `http://127.0.0.1:${between.port}/v1`, log });
    return {
      client: createCaller({ backend, limits }),
      async close() {
        await backend.close();
        await between.close();
        await directory.close();
      },
    };
  },
});
