import { NAME_RULES } from "../../namespace/identifier.ts";
import { SECRET_NAME } from "../../runtime/text.ts";
import {
  BACKEND_KINDS,
  CATALOG_KINDS,
  type Environment,
  type OptionTable,
  ROW_KINDS,
  ROWS_HERE,
  UsageError,
} from "../option-spec.ts";
import { parseChoice, parseNamedValue, parseRoot, parseText } from "../parsers.ts";

/**
 * Environment variables of a vendor's tools that match options of its storage, by the scheme of the root. The storage's
 * own libraries find any other credentials.
 */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  s3: [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_SKIP_SIGNATURE",
  ],
  gs: ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY"],
  az: [
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
  ],
};

/** Parses an option of a storage, `key=value`. */
export function parseStorageOption(text: string): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  const key = text.slice(0, at).toLowerCase();
  if (at < 0 || !/^[a-z][a-z0-9_]*$/.test(key)) {
    throw new UsageError("must be a storage option such as aws_region=eu-central-1");
  }
  return [key, text.slice(at + 1)];
}

/** Parses a storage option that all clients may know. */
export function parseClientStorageOption(text: string): readonly [key: string, value: string] {
  const [key, value] = parseStorageOption(text);
  if (SECRET_NAME.test(key) && key !== "aws_skip_signature") {
    throw new UsageError("must not be a credential, because every client gets it");
  }
  return [key, value];
}

/** Collects the options of the storage of a root; options override variables. */
export function storageOptionsOf(
  root: string,
  options: readonly (readonly [key: string, value: string])[],
  environment: Environment,
): Readonly<Record<string, string>> {
  const [scheme = ""] = /^[a-z0-9]+(?=:\/\/)/.exec(root) ?? [];
  const found = (VARIABLES[scheme] ?? []).flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name.toLowerCase(), value] as const];
  });
  return Object.fromEntries([...found, ...options]);
}

/** Options that select the catalog. */
export const CATALOG_OPTIONS = {
  config: {
    flag: "config",
    value: "FILE",
    help: "Configuration file, in YAML or JSON. Flags and environment variables override it.",
    parse: parseText,
    common: "Configuration file, in YAML or JSON.",
  },
  backend: {
    flag: "backend",
    value: "NAME",
    help: "Backend: dir (a directory of Lance tables), rest or grpc (an upstream catalog), glue, polaris, lakekeeper or unity (a foreign catalog, whose rows --rows here serves; the last three are not tried against the real service, docs/catalogs.md), the name of a backend of a plugin, or a package or ./file that exports a backend (docs/extending.md). --uri implies rest, and --address implies grpc.",
    fallback: "dir",
    parse: parseText,
    backends: BACKEND_KINDS,
    place: true,
  },
  backendOptions: {
    flag: "backend-option",
    value: "NAME=VALUE",
    help: "Option of a backend that a plugin, a package or a file exports.",
    parse: parseNamedValue,
    backends: ["other"],
    repeatable: true,
    named: true,
    place: true,
    secret: true,
  },
  backendOptionFiles: {
    flag: "backend-option-file",
    value: "NAME=FILE",
    help: "File with the value of a --backend-option. The gateway reads it again when it changes.",
    parse: parseNamedValue,
    backends: ["other"],
    repeatable: true,
    named: true,
    place: true,
    holds: "backend-option",
  },
  root: {
    flag: "root",
    value: "DIR|URI",
    help: "Directory of the catalog, created if it does not exist; or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix (docs/storage.md).",
    fallback: "./lance-data",
    parse: parseRoot,
    backends: ["dir"],
    place: true,
    common: "Directory or bucket.",
  },
  tableDirectory: {
    flag: "table-directory",
    value: "DIR",
    help: 'Directory of the manifest and the tables, relative to the root; "." for the root itself. Default: "data", or the root if it already holds a Lance catalog.',
    parse: parseText,
    backends: ["dir"],
    place: true,
  },
  names: {
    flag: "names",
    value: "RULE",
    help: "Names that new namespaces and tables may have: specification for letters, digits, _, - and ., or unicode for any text without separators and wildcards (docs/limits.md). Existing objects keep theirs.",
    fallback: "specification",
    parse: parseChoice(NAME_RULES),
    backends: ["dir"],
  },
  storageOptions: {
    flag: "storage-option",
    value: "KEY=VALUE",
    help: "Option of the object store of the root, for example aws_endpoint=https://minio.example.com (docs/storage.md).",
    parse: parseStorageOption,
    backends: ROW_KINDS,
    needs: ROWS_HERE,
    repeatable: true,
    named: true,
    place: true,
    secret: true,
  },
  storageOptionFiles: {
    flag: "storage-option-file",
    value: "KEY=FILE",
    help: "File with the value of a --storage-option, such as a secret key. The gateway reads it again when it changes.",
    parse: parseStorageOption,
    backends: ROW_KINDS,
    needs: ROWS_HERE,
    repeatable: true,
    named: true,
    place: true,
    holds: "storage-option",
  },
  clientStorageOptions: {
    flag: "client-storage-option",
    value: "KEY=VALUE",
    help: "Storage option that clients get from describe and declare in place of the gateway's own, for example another aws_endpoint; no credentials (docs/storage.md).",
    parse: parseClientStorageOption,
    backends: ["dir", ...CATALOG_KINDS],
    repeatable: true,
    named: true,
    place: true,
    secret: true,
  },
} as const satisfies OptionTable;
