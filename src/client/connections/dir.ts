import { LanceError } from "../../namespace/errors.ts";
import { NAME_RULES, type NameRule } from "../../namespace/identifier.ts";
import { type NamespaceImplementation, type Properties, readProperties } from "./properties.ts";
import { SILENT_LOG } from "./silent-log.ts";

/** Properties of `connect("dir", …)`. */
export interface DirProperties {
  /** Directory of the catalog, which is created if it does not exist, or its URI in an object store. */
  readonly root: string;
  /**
   * Directory below the root that holds the tables; `.` is the root. Default: `data`, or the root if it already is a Lance
   * catalog, as for a gateway.
   */
  readonly table_directory?: string | undefined;
  /** Rule for the names of new objects: `specification` or `unicode`; existing ones keep theirs. Default: `specification`. */
  readonly names?: NameRule | undefined;
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

/** Opens a directory in this process, which creates it, and loads the engine. */
export async function openDirectory(properties: Properties): Promise<NamespaceImplementation> {
  const reader = readProperties("dir", properties);
  const root = reader.required("root");
  const tableDirectory = reader.text("table_directory");
  const managedVersioning = reader.flag("table_version_tracking_enabled");
  const names = nameRuleOf(reader.text("names"));
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
  const { createDirectoryBackend } = await import("../../backends/dir/index.ts");
  const options = { root, tableDirectory, names, managedVersioning, storageOptions, log: SILENT_LOG };
  const backend = await createDirectoryBackend(options).catch((cause: unknown) => {
    if (!(cause instanceof Error) || cause instanceof LanceError) throw cause;
    throw new LanceError("InvalidInput", cause.message, { cause });
  });
  return {
    ...backend,
    name: "dir",
    description: root,
    lancedb: { implementation: "dir", properties: { root: backend.base, ...prefixed(storageOptions) } },
  };
}

function nameRuleOf(text: string | undefined): NameRule | undefined {
  if (text === undefined || NAME_RULES.some((rule) => rule === text)) return text as NameRule | undefined;
  throw new LanceError("InvalidInput", `"names" must be one of ${NAME_RULES.join(", ")}, not "${text}"`);
}

function prefixed(storageOptions: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(storageOptions).map(([key, value]) => [`storage.${key}`, value]));
}
