import { pino } from "pino";
import { ROW_OPERATIONS } from "../../../src/backends/composed/row-operations.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { temporaryDirectory } from "../directory.ts";
import { startServer, type TestServer } from "../server.ts";

/** A gateway that keeps a catalog and serves no rows. */
export interface RowlessServer extends TestServer {
  /** Directory below which its tables are, or a place in a bucket. */
  readonly root: string;
}

/** Operations on versions, which a catalog that commits them serves. */
const OF_VERSIONS: ReadonlySet<string> = new Set(["listTableVersions", "describeTableVersion"]);

/**
 * Starts a gateway over a directory without the operations on rows, and without creations.
 *
 * @param options a root, with options of its storage, and whether it commits the versions of its tables. Default: a new directory, which
 *   closing removes
 * @param changed replaces operations. Default: none
 */
export async function startRowlessServer(
  options: Partial<
    Pick<Parameters<typeof createDirectoryBackend>[0], "root" | "storageOptions" | "managedVersioning">
  > = {},
  changed: (operations: Backend["operations"]) => Backend["operations"] = (operations) => operations,
): Promise<RowlessServer> {
  const directory = options.root === undefined ? await temporaryDirectory() : undefined;
  const root = directory?.path ?? (options.root as string);
  const backend = await createDirectoryBackend({ ...options, root, log: pino({ level: "silent" }) });
  const isKept = (name: string) =>
    options.managedVersioning === true && OF_VERSIONS.has(name)
      ? true
      : !Object.hasOwn(ROW_OPERATIONS, name) && name !== "createTable";
  const kept = Object.entries(backend.operations).filter(([name]) => isKept(name));
  const operations = changed(Object.fromEntries(kept));
  const { port, close } = await startServer({ ...backend, operations, extensions: {} });
  return {
    port,
    root,
    async close() {
      await close();
      await directory?.remove();
    },
  };
}
