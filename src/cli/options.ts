import {
  BACKEND_KINDS,
  type OptionSpec,
  parseChoice,
  parseInteger,
  parseOrigin,
  parseSize,
  parseSwitch,
  parseText,
} from "./option-spec.ts";
import { parseStorageOption } from "./storage-options.ts";
import { UPSTREAM_OPTIONS } from "./upstream-options.ts";

/** The options of `lance-gateway serve`. */
export const SERVE_OPTIONS = {
  config: {
    flag: "config",
    value: "FILE",
    help: "A configuration file, in YAML or JSON. Flags and environment variables come before what it says.",
    parse: parseText,
  },
  backend: {
    flag: "backend",
    value: "KIND",
    help: "What answers the calls: dir (a directory of Lance tables), rest or grpc (an upstream catalog).",
    fallback: "dir",
    parse: parseChoice(BACKEND_KINDS),
    backends: BACKEND_KINDS,
    place: true,
  },
  root: {
    flag: "root",
    value: "DIR|URI",
    help: "The directory of the catalog, which is created when it is missing; or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix (docs/storage.md).",
    fallback: "./lance-data",
    parse: parseText,
    backends: ["dir"],
    place: true,
  },
  tableDirectory: {
    flag: "table-directory",
    value: "D",
    help: 'Where manifest and tables lie, relative to the root; "." is the root itself. By default "data", or the root when it already holds a Lance catalog.',
    parse: parseText,
    backends: ["dir"],
    place: true,
  },
  storageOptions: {
    flag: "storage-option",
    value: "KEY=VALUE",
    help: "How the storage of a root that is a URI is reached, for example aws_endpoint=https://minio.example.com (docs/storage.md).",
    parse: parseStorageOption,
    backends: ["dir"],
    repeatable: true,
    place: true,
    secret: true,
  },
  managedVersioning: {
    flag: "managed-versioning",
    help: "Tells clients to commit new versions of tables through the server instead of writing them on their own; a table's property table_version_tracking_enabled comes before it.",
    fallback: "false",
    parse: parseSwitch,
    backends: ["dir"],
  },
  maxStalenessMs: {
    flag: "max-staleness",
    value: "MS",
    help: "How old, in milliseconds, the last look at the storage may be for a read to answer from memory without another one; what this process committed is always seen. 0: a read sees every commit that finished before it.",
    fallback: "0",
    parse: parseInteger(0, 3_600_000),
    backends: ["dir"],
  },
  noMaintenance: {
    flag: "no-maintenance",
    help: "Leaves the manifest of the catalog as commits make it: small files are not joined, old versions stay (docs/architecture.md).",
    fallback: "false",
    parse: parseSwitch,
    backends: ["dir"],
  },
  maxWaitingMutations: {
    flag: "max-waiting-mutations",
    value: "N",
    help: "The most changes of the catalog that wait to be committed; further ones are refused with 429.",
    fallback: "10000",
    parse: parseInteger(1, 1_000_000),
    backends: ["dir"],
  },
  host: {
    flag: "host",
    value: "H",
    help: "The address to listen on.",
    fallback: "127.0.0.1",
    parse: parseText,
  },
  port: {
    flag: "port",
    value: "N",
    help: "The port to listen on; 0 takes a free one.",
    fallback: "2333",
    parse: parseInteger(0, 65_535),
  },
  corsOrigins: {
    flag: "cors-origin",
    value: "ORIGIN",
    help: "An origin whose pages may call from browsers, such as https://app.example.com, or * for any. Without one browsers allow none.",
    parse: parseOrigin,
    repeatable: true,
  },
  logLevel: {
    flag: "log-level",
    value: "L",
    help: "What goes into the log on standard error: trace, debug (every call), info, warn, error or silent.",
    fallback: "info",
    parse: parseChoice(["trace", "debug", "info", "warn", "error", "silent"]),
  },
  noMetrics: {
    flag: "no-metrics",
    help: "Leaves out /metrics, and the counting for it (docs/observability.md).",
    fallback: "false",
    parse: parseSwitch,
  },
  maxMessageBytes: {
    flag: "max-message-size",
    value: "SIZE",
    help: "The largest JSON body, and the largest single message of the other protocols.",
    fallback: "16MiB",
    parse: parseSize,
  },
  maxUploadBytes: {
    flag: "max-upload-size",
    value: "SIZE",
    help: "The largest Arrow body of one call.",
    fallback: "1GiB",
    parse: parseSize,
    backends: BACKEND_KINDS,
  },
  maxBufferedBytes: {
    flag: "max-buffered-size",
    value: "SIZE",
    help: "How much of Arrow bodies all running calls may hold in memory together.",
    fallback: "2GiB",
    parse: parseSize,
    backends: BACKEND_KINDS,
  },
  maxConcurrentCalls: {
    flag: "max-concurrent-calls",
    value: "N",
    help: "How many calls may run at once; more are refused. Without it there is no limit.",
    parse: parseInteger(1, 1_000_000),
    backends: BACKEND_KINDS,
  },
  uploadPartBytes: {
    flag: "upload-part-size",
    value: "SIZE",
    help: "How much of an Arrow body is written at once; a longer one is written in parts that become one version.",
    fallback: "32MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  indexCacheBytes: {
    flag: "index-cache-size",
    value: "SIZE",
    help: "The memory of the engine for parts of indices.",
    fallback: "256MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  metadataCacheBytes: {
    flag: "metadata-cache-size",
    value: "SIZE",
    help: "The memory of the engine for the metadata of files.",
    fallback: "128MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  maxOpenTables: {
    flag: "max-open-tables",
    value: "N",
    help: "The most tables that stay open while nobody uses them.",
    fallback: "256",
    parse: parseInteger(1, 1_000_000),
    backends: ["dir"],
  },
  idleSeconds: {
    flag: "table-idle-seconds",
    value: "N",
    help: "How long a table stays open while nobody uses it.",
    fallback: "600",
    parse: parseInteger(1, 86_400),
    backends: ["dir"],
  },
  drainSeconds: {
    flag: "drain-seconds",
    value: "N",
    help: "How long running calls may take to finish after SIGTERM or SIGINT.",
    fallback: "30",
    parse: parseInteger(0, 3_600),
  },
  ...UPSTREAM_OPTIONS,
} as const satisfies Record<string, OptionSpec>;

type Value<S extends OptionSpec> = S extends { repeatable: true }
  ? readonly ReturnType<S["parse"]>[]
  : S extends { fallback: string }
    ? ReturnType<S["parse"]>
    : ReturnType<S["parse"]> | undefined;

type Options = typeof SERVE_OPTIONS;

/** The parsed options of `lance-gateway serve`; one that repeats is a list, which may be empty. */
export type ServeOptions = { readonly [K in keyof Options]: Value<Options[K]> };
