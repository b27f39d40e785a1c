import type { OpenedDirectory } from "../../backends/dir/open-directory.ts";
import { SILENT_LOG } from "../../client/connections/silent-log.ts";
import { LanceError } from "../../client/exports.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { environmentLayer, type Layer } from "../../config/layers.ts";
import { type Environment, type OptionSpec, type OptionTable, UsageError } from "../../config/option-spec.ts";
import { storageOptionsOf } from "../../config/options/catalog.ts";
import { CLIENT_OPTIONS } from "../../config/options/client.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { parseSwitch } from "../../config/parsers.ts";
import { storageSecrets } from "../../config/secrets.ts";
import { openBackend, prepareEngine } from "../../gateway/backends/open-backend.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createLog, toStandardError } from "../../observability/log/log.ts";
import { readConnection } from "../contexts.ts";
import { placeOf, requireRoot } from "../place.ts";
import { CallFailure } from "../terminal/failure.ts";

/** The options that say which directory a command is about; they mean what they mean for `serve`. */
export const ROOT_OPTIONS = {
  context: CLIENT_OPTIONS.context,
  root: SERVE_OPTIONS.root,
  tableDirectory: SERVE_OPTIONS.tableDirectory,
  storageOptions: SERVE_OPTIONS.storageOptions,
  storageOptionFiles: SERVE_OPTIONS.storageOptionFiles,
} as const satisfies OptionTable;

/** Output for programs instead of people. */
export const JSON_OPTION = {
  flag: "json",
  help: "Print JSON instead of a table.",
  fallback: "false",
  parse: parseSwitch,
} as const satisfies OptionSpec;

/** Which catalog a command is about. */
export interface CatalogChoice {
  readonly root: string;
  readonly tableDirectory: string | undefined;
  readonly storageOptions: readonly (readonly [key: string, value: string])[];
}

/**
 * Reads which directory a command works on: that of its options, or that of the saved connection.
 *
 * @throws UsageError if the saved connection, or a variable that other commands obey, is to a server.
 */
export async function readRoot(layers: readonly Layer[], environment: Environment): Promise<CatalogChoice> {
  return requireDirectory(await readPlace(layers, environment));
}

/** Returns the directory of a connection. @throws UsageError if it is to a server */
export function requireDirectory(options: ServeOptions): CatalogChoice {
  if (options.backend === "dir") return options;
  throw new UsageError(
    `this command works on a directory, and the connection is to ${placeOf(options)}; --root or --context names a directory`,
  );
}

/** Reads which catalog of any kind a command works on: that of its options, or that of the saved connection. */
export function readPlace(layers: readonly Layer[], environment: Environment): Promise<ServeOptions> {
  const variables = environmentLayer(environment);
  const places: Layer = (spec) => (spec.place ? variables(spec) : undefined);
  return readConnection([...layers, places], environment);
}

/**
 * Works on a catalog without serving it.
 *
 * @param writes whether the command writes
 * @throws Error with a single line, for a catalog that is missing or cannot be written; UsageError for a missing directory
 */
export async function withCatalog<T>(
  { root, tableDirectory, storageOptions }: CatalogChoice,
  writes: boolean,
  work: (directory: OpenedDirectory) => Promise<T>,
): Promise<T> {
  // A server makes a root that is missing; a command that looks after one has been given the wrong place.
  await requireRoot(root, "--root or --context");
  prepareEngine();
  const log = createLog("warn", storageSecrets(storageOptions), toStandardError("auto"));
  const { openBase } = await import("../../backends/dir/catalog/base/base.ts");
  const { openDirectory } = await import("../../backends/dir/open-directory.ts");
  const { openStore } = await import("../../backends/dir/stores/open-store.ts");
  const storage = await openStore(root, storageOptionsOf(root, storageOptions, process.env));
  const { key } = await openBase(storage, tableDirectory, true);
  if (!(await storage.store.exists(key)))
    throw new Error(`there is no catalog in ${root}; --root names the directory that a gateway serves`);
  const directory = await openDirectory({
    ...{ root, storage, tableDirectory, log },
    readOnly: !writes,
    maintenance: false,
  });
  try {
    if (writes && directory.readOnly !== undefined) {
      throw new Error(`${root} is for reading only: ${directory.readOnly}`);
    }
    return await work(directory);
  } finally {
    await directory.close();
  }
}

/** The options that say which data a connection is to; they mean what they mean for `serve`. */
export const PLACE_OPTIONS: OptionTable = Object.fromEntries(
  Object.entries<OptionSpec>(SERVE_OPTIONS).filter(([, spec]) => spec.place),
);

/** The options that say which catalog a command is about. */
export const CONNECTION_OPTIONS: OptionTable = { ...CLIENT_OPTIONS, ...PLACE_OPTIONS };

/**
 * Access of a command to a catalog. With `read`, a command leaves a directory as it is: it finishes no interrupted changes and creates
 * nothing. With `wait`, it takes over the jobs of processes that have ended, so that it does not wait for ever; any other command would
 * break them off when it ends.
 */
export type CatalogAccess = "read" | "change" | "create" | "wait";

/** A connection to a catalog. */
export interface Connected {
  readonly namespace: Namespace;
  readonly backend: Backend;
}

/**
 * Connects, works, and closes.
 *
 * @param access a directory that is missing is made for `create` alone.
 * @throws Error with one clear line, which names the address if the server cannot be reached.
 */
export async function withNamespace<T>(
  options: ServeOptions,
  access: CatalogAccess,
  work: (connected: Connected) => Promise<T>,
): Promise<T> {
  if (options.backend === "dir" && access !== "create")
    await requireRoot(options.root, "--root, --uri, --address or --context");
  prepareEngine();
  try {
    const readOnly = options.readOnly || access === "read";
    const backend = await openBackend(
      { ...options, readOnly },
      { log: SILENT_LOG, takesOver: access === "wait" },
    );
    await using namespace = createNamespace(backend);
    return await work({ namespace, backend });
  } catch (thrown) {
    if (!(thrown instanceof LanceError)) throw thrown;
    throw new CallFailure(thrown, placeOf(options), options.backend !== "dir");
  }
}
