import type { Logger } from "pino";
import type { Backend } from "../../namespace/port.ts";
import { createCatalog } from "./catalog/catalog.ts";
import { createLayout, openBase } from "./catalog/layout.ts";
import { createManifestTable } from "./catalog/manifest.ts";
import { createEngine } from "./engine/engine.ts";
import { createLocalStore } from "./format/local-store.ts";
import type { DirContext } from "./operations/context.ts";
import { createDeclareOperations } from "./operations/declare.ts";
import { createDescribeOperations } from "./operations/describe.ts";
import { createDropOperations } from "./operations/drop.ts";
import { createListOperations } from "./operations/list.ts";
import { createNamespaceOperations } from "./operations/namespaces.ts";
import { createReadOperations } from "./operations/read.ts";
import { createWriteOperations } from "./operations/write.ts";

/** Options of {@link createDirectoryBackend}. */
export interface DirectoryBackendOptions {
  /** The directory of the catalog, an absolute path or one relative to the working directory. */
  readonly root: string;
  /** The directory below the root that holds the tables; `.` is the root. Default: `data`, or the root of an existing catalog. */
  readonly tableDirectory?: string | undefined;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. Default: 1 GiB. */
  readonly maxUploadBytes?: number | undefined;
  /** The most tables that stay open while nobody uses them. Default: 256. */
  readonly maxOpenTables?: number | undefined;
  /** The most entries of a page of a listing. Default: 10,000. */
  readonly maxPageSize?: number | undefined;
}

/**
 * Creates the backend that serves a directory of Lance tables, in the public directory catalog format.
 *
 * The engine is loaded in the background.
 *
 * @throws Error with one clear line, when the directory cannot be used.
 */
export async function createDirectoryBackend(options: DirectoryBackendOptions): Promise<Backend> {
  const { root, tableDirectory, log, maxOpenTables } = options;
  const base = await openBase(root, tableDirectory);
  const engine = createEngine({ log, ...(maxOpenTables !== undefined && { maxHandles: maxOpenTables }) });
  const catalog = createCatalog(createManifestTable(base, engine), log);
  const context: DirContext = {
    catalog,
    layout: createLayout(base),
    engine,
    store: createLocalStore(),
    log,
    maxUploadBytes: options.maxUploadBytes ?? 1024 ** 3,
    maxPageSize: options.maxPageSize ?? 10_000,
  };
  engine.warmUp().catch((error) => log.error({ err: error }, "the engine cannot be loaded"));
  return {
    name: "dir",
    operations: {
      ...createNamespaceOperations(context),
      ...createListOperations(context),
      ...createDeclareOperations(context),
      ...createDescribeOperations(context),
      ...createDropOperations(context),
      ...createWriteOperations(context),
      ...createReadOperations(context),
    },
    async ready() {
      try {
        await engine.warmUp();
        await catalog.read();
        return true;
      } catch (error) {
        log.warn({ err: error }, "the catalog cannot be read");
        return false;
      }
    },
    async close() {
      await catalog.close();
      await engine.close();
    },
  };
}
