import { BACKEND_KINDS, type OptionTable } from "./option-spec.ts";
import { parseNamedValue, parseText } from "./parsers.ts";
import { parseClientStorageOption, parseStorageOption } from "./storage-options.ts";

/** Options that select the catalog. */
export const CATALOG_OPTIONS = {
  config: {
    flag: "config",
    value: "FILE",
    help: "Configuration file, in YAML or JSON. Flags and environment variables override it.",
    parse: parseText,
  },
  backend: {
    flag: "backend",
    value: "NAME",
    help: "Backend: dir (a directory of Lance tables), rest or grpc (an upstream catalog), the name of a backend of a plugin, or a package or ./file that exports a backend (docs/extending.md). --uri implies rest, and --address implies grpc.",
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
    place: true,
    secret: true,
  },
  root: {
    flag: "root",
    value: "DIR|URI",
    help: "Directory of the catalog, created if it does not exist; or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix (docs/storage.md).",
    fallback: "./lance-data",
    parse: parseText,
    backends: ["dir"],
    place: true,
  },
  tableDirectory: {
    flag: "table-directory",
    value: "DIR",
    help: 'Directory of the manifest and the tables, relative to the root; "." for the root itself. Default: "data", or the root if it already holds a Lance catalog.',
    parse: parseText,
    backends: ["dir"],
    place: true,
  },
  storageOptions: {
    flag: "storage-option",
    value: "KEY=VALUE",
    help: "Option of the object store of the root, for example aws_endpoint=https://minio.example.com (docs/storage.md).",
    parse: parseStorageOption,
    backends: ["dir"],
    repeatable: true,
    place: true,
    secret: true,
  },
  clientStorageOptions: {
    flag: "client-storage-option",
    value: "KEY=VALUE",
    help: "Storage option that clients get from describe and declare in place of the gateway's own, for example another aws_endpoint; no credentials (docs/storage.md).",
    parse: parseClientStorageOption,
    backends: ["dir"],
    repeatable: true,
    place: true,
    secret: true,
  },
} as const satisfies OptionTable;
