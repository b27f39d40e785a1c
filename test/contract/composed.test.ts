import { pino } from "pino";
import { createComposedBackend } from "../../src/backends/composed/index.ts";
import { ROW_OPERATIONS } from "../../src/backends/composed/row-operations.ts";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";
import { createCaller } from "../support/caller.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startServer } from "../support/server.ts";
import { contractSuite } from "./suite.ts";
import type { Fixture } from "./world.ts";

const limits = { maxUploadBytes: 2 ** 26 };
const log = pino({ level: "silent" });

/** Returns a backend without the operations on rows, and without creations. */
function withoutRows(backend: Backend): Backend {
  const operations = Object.fromEntries(
    Object.entries(backend.operations).filter(
      ([name]) => !Object.hasOwn(ROW_OPERATIONS, name) && name !== "createTable",
    ),
  );
  return { ...backend, operations, extensions: {} };
}

async function open(): Promise<Fixture> {
  const { path: root, remove } = await temporaryDirectory();
  const upstream = await startServer(withoutRows(await createDirectoryBackend({ root, log })));
  const rest = await createRestBackend({ uri: `http://127.0.0.1:${upstream.port}`, log });
  const backend = createComposedBackend(rest, { log, allowedLocations: [root] });
  return {
    client: createCaller({ backend, limits }),
    async close() {
      await backend.close();
      await upstream.close();
      await remove();
    },
  };
}

contractSuite("a REST catalog with rows served here", {
  open,
  capabilities: { changesProperties: false, recordsJobs: false },
});
