import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { createCaller } from "../support/caller.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { contractSuite } from "./suite.ts";

const limits = { maxUploadBytes: 2 ** 26 };

contractSuite("a directory", {
  async open() {
    const { path: root, remove } = await temporaryDirectory();
    const backend = await createDirectoryBackend({ root, log: pino({ level: "silent" }) });
    return {
      client: createCaller({ backend, limits }),
      async close() {
        await backend.close();
        await remove();
      },
    };
  },
});
