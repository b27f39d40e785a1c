import { pino } from "pino";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { NameRule } from "../../src/namespace/identifier.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";
import { unicodeNameTests } from "./identifiers.ts";
import { contractSuite } from "./suite.ts";
import type { Fixture } from "./world.ts";

const limits = { maxUploadBytes: 2 ** 26 };

async function open(names?: NameRule): Promise<Fixture> {
  const upstream = await startDirectoryServer({}, {}, names);
  const uri = `http://127.0.0.1:${upstream.port}`;
  const backend = await createRestBackend({ uri, log: pino({ level: "silent" }) });
  return {
    client: createCaller({ backend, limits }),
    async close() {
      await backend.close();
      await upstream.close();
    },
  };
}

contractSuite("a REST upstream", { open });
unicodeNameTests("a REST upstream", () => open("unicode"));
