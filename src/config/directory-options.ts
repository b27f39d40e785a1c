import type { OptionTable } from "./option-spec.ts";
import { parseInteger, parseSize, parseSwitch } from "./parsers.ts";

/** Options of a directory backend. */
export const DIRECTORY_OPTIONS = {
  managedVersioning: {
    flag: "managed-versioning",
    help: "Tell clients to commit new versions of tables through the server instead of writing them to storage. The table property table_version_tracking_enabled overrides it.",
    fallback: "false",
    parse: parseSwitch,
    backends: ["dir"],
  },
  maxStalenessMs: {
    flag: "max-staleness",
    value: "MS",
    help: "Maximum age of cached catalog state for reads, in milliseconds. With 0 a read sees every commit that finished before it. The gateway's own commits are always visible.",
    fallback: "0",
    parse: parseInteger(0, 3_600_000),
    backends: ["dir"],
  },
  noMaintenance: {
    flag: "no-maintenance",
    help: "Keep small files and old versions of the catalog's manifest instead of compacting and pruning them (docs/architecture.md).",
    fallback: "false",
    parse: parseSwitch,
    backends: ["dir"],
  },
  diskReserveBytes: {
    flag: "disk-reserve",
    value: "SIZE",
    help: "Disk space reserved in the directory so that drops succeed when the disk is full; 0 for none (docs/maintenance.md). Object stores need none.",
    fallback: "4MiB",
    parse: (text) => (text === "0" ? 0 : parseSize(text)),
    backends: ["dir"],
  },
  maxWaitingMutations: {
    flag: "max-waiting-mutations",
    value: "N",
    help: "Maximum number of catalog changes that wait for a commit; the gateway refuses more with 429.",
    fallback: "10000",
    parse: parseInteger(1, 1_000_000),
    backends: ["dir"],
  },
  uploadPartBytes: {
    flag: "upload-part-size",
    value: "SIZE",
    help: "Size of the parts in which long Arrow bodies are written; all parts of a body become one version.",
    fallback: "32MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  indexCacheBytes: {
    flag: "index-cache-size",
    value: "SIZE",
    help: "Memory of the engine for parts of indices.",
    fallback: "256MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  metadataCacheBytes: {
    flag: "metadata-cache-size",
    value: "SIZE",
    help: "Memory of the engine for file metadata.",
    fallback: "128MiB",
    parse: parseSize,
    backends: ["dir"],
  },
  maxOpenTables: {
    flag: "max-open-tables",
    value: "N",
    help: "Maximum number of idle tables that stay open.",
    fallback: "256",
    parse: parseInteger(1, 1_000_000),
    backends: ["dir"],
  },
  idleSeconds: {
    flag: "table-idle-seconds",
    value: "N",
    help: "Time after which an idle table is closed, in seconds.",
    fallback: "600",
    parse: parseInteger(1, 86_400),
    backends: ["dir"],
  },
} as const satisfies OptionTable;
