import { pino } from "pino";
import { createComposedBackend } from "../../../src/backends/composed/index.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { temporaryDirectory } from "../directory.ts";

/** Opens a catalog's backend, whose new tables are below `tableRoot`, and a client of what `serve` makes of it. */
export type OpenCatalog<T> = (tableRoot?: string, serve?: (catalog: Backend) => Backend) => Promise<T>;

/** Opens a gateway in front of a catalog that serves the rows of tables in a directory of its own. */
export async function openWithRows<T extends { close(): Promise<void> }>(open: OpenCatalog<T>): Promise<T> {
  const { path, remove } = await temporaryDirectory();
  const log = pino({ level: "silent" });
  const fixture = await open(path, (catalog) =>
    createComposedBackend(catalog, { log, allowedLocations: [path] }),
  );
  return {
    ...fixture,
    async close() {
      await fixture.close();
      await remove();
    },
  };
}
