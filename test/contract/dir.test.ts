import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import type { NameRule } from "../../src/namespace/identifier.ts";
import { createCaller } from "../support/caller.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { unicodeNameTests } from "./identifiers.ts";
import { contractSuite } from "./suite.ts";
import type { Fixture } from "./world.ts";

const limits = { maxUploadBytes: 2 ** 26 };

async function open(names?: NameRule): Promise<Fixture> {
  const { path: root, remove } = await temporaryDirectory();
  const backend = await createDirectoryBackend({ root, names, log: pino({ level: "silent" }) });
  return {
    client: createCaller({ backend, limits }),
    async close() {
      await backend.close();
      await remove();
    },
  };
}

contractSuite("a directory", { open });
unicodeNameTests("a directory", () => open("unicode"));
