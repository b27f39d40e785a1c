import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LanceError } from "../namespace/errors.ts";
import type { NamespaceImplementation } from "./implementation.ts";
import { lateDirectory } from "./late-directory.ts";
import { type Properties, readProperties } from "./properties.ts";
import { SILENT_LOG } from "./silent-log.ts";

/** Properties of `connect("dir", …)`. */
export interface DirProperties {
  /** Directory of the catalog, or its URI in an object store. */
  readonly root: string;
  /**
   * Directory below the root that holds the tables; `.` is the root, where the libraries of other languages have
   * them. Default: `data` if a gateway keeps a catalog there, otherwise the root.
   */
  readonly table_directory?: string | undefined;
  /** Whether clients are told to commit versions through the namespace. Default: false. */
  readonly table_version_tracking_enabled?: boolean | string | undefined;
  /** `storage.<key>` is an option of the storage if the root is a URI, such as `storage.aws_region`. */
  readonly [storage: `storage.${string}`]: string;
}

/** Properties of other libraries that have no effect here: what they enable is always on, or never needed. */
const OTHERS = [
  "dir_listing_enabled",
  "dir_listing_to_manifest_migration_enabled",
  "inline_optimization_enabled",
  "commit_retries",
  "ops_metrics_enabled",
];

/** Opens a directory in this process, and loads the engine. */
export async function openDirectory(properties: Properties): Promise<NamespaceImplementation> {
  const reader = readProperties("dir", properties);
  const root = reader.required("root");
  const tableDirectory = reader.text("table_directory");
  const managedVersioning = reader.flag("table_version_tracking_enabled");
  const manifest = reader.flag("manifest_enabled");
  const storageOptions = reader.under("storage.");
  reader.ignore(...OTHERS);
  reader.end();
  if (manifest === false) {
    throw new LanceError(
      "Unsupported",
      'a directory without a manifest, "manifest_enabled": false, is not supported',
    );
  }
  const { createDirectoryBackend } = await import("../backends/dir/index.ts");
  const { findEngine } = await import("../backends/dir/engine/load-native.ts");
  const directoryNow = () => tableDirectory ?? (isGatewayRoot(root) ? "data" : ".");
  const refuse = (cause: unknown): never => {
    throw cause instanceof Error && !(cause instanceof LanceError)
      ? new LanceError("InvalidInput", cause.message, { cause })
      : cause;
  };
  const open = () =>
    createDirectoryBackend({
      root,
      tableDirectory: directoryNow(),
      managedVersioning,
      storageOptions,
      log: SILENT_LOG,
    }).catch(refuse);
  const directory = directoryNow();
  const place = directory === "." ? root : `${root.replace(/\/$/, "")}/${directory}`;
  const isMissing = () => isNowhere(root);
  const openLater = () => {
    try {
      findEngine();
    } catch (error) {
      refuse(error);
    }
    return lateDirectory(root, isMissing, open);
  };
  return {
    ...(isMissing() ? openLater() : await open()),
    name: "dir",
    description: root,
    lancedb: { implementation: "dir", properties: { root: place, ...prefixed(storageOptions) } },
  };
}

function prefixed(storageOptions: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(storageOptions).map(([key, value]) => [`storage.${key}`, value]));
}

/** Whether there is nothing at the path of a root; a bucket has no directories that could be missing. */
function isNowhere(root: string): boolean {
  const isFile = /^file:\/\//i.test(root);
  if (root.includes("://") && !isFile) return false;
  try {
    statSync(isFile ? fileURLToPath(root) : root);
    return false;
  } catch (error) {
    // The directory itself says what else is wrong with it.
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Whether a gateway was started on the directory while it was empty. */
function isGatewayRoot(root: string): boolean {
  return existsSync(join(root, "data", "__manifest")) && !existsSync(join(root, "__manifest"));
}
