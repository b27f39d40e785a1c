/** Imports that the files of a folder may have from the project, beside their own folder and `runtime`. */
export interface FolderRule {
  /** Folders or files below `src`; `folder/*` for a folder's own files, `*` for everything. */
  readonly may: readonly string[];
  /** Folders inside, innermost first; each may import those before it. `*` is the folder's own files. */
  readonly parts?: readonly string[];
  /** Whether the code runs in browsers, too, and must not import modules of Node. Default: false. */
  readonly isForBrowsers?: boolean;
}

const CORE = ["gen", "namespace"];

/** The only folder that may reach into parts of packages and of Node that have no public interface. */
export const INTERNALS = "runtime/internals";

/** The rule of each folder below `src`. The longest folder that a file is in counts. */
export const IMPORT_RULES: Readonly<Record<string, FolderRule>> = {
  runtime: { may: [] },
  namespace: { may: ["gen"] },
  arrow: { may: CORE },
  dialects: { may: CORE },
  transcode: { may: [...CORE, "dialects"] },
  "server/openapi": { may: [...CORE, "arrow", "transcode"] },
  auth: { may: CORE },
  pipeline: { may: [...CORE, "arrow", "auth"], parts: ["call", "limits", "access", "records", "*"] },
  backends: { may: CORE },
  "backends/databases": { may: CORE },
  "backends/resilience": { may: CORE },
  "backends/upstream-identity": { may: [...CORE, "backends/*", "backends/resilience"] },
  "backends/upstream-cache": { may: [...CORE, "backends/upstream-identity"] },
  "backends/grpc": {
    may: [...CORE, "backends/resilience", "backends/upstream-cache", "backends/upstream-identity"],
  },
  "backends/rest": {
    may: [
      ...CORE,
      "arrow",
      "dialects",
      "transcode",
      "backends/resilience",
      "backends/upstream-cache",
      "backends/upstream-identity",
    ],
  },
  "backends/catalogs/base": {
    may: [...CORE, "backends/*", "backends/resilience", "backends/rest", "backends/upstream-identity"],
  },
  "backends/catalogs": { may: [...CORE, "backends/*", "backends/catalogs/base", "backends/resilience"] },
  "backends/composed": { may: [...CORE, "arrow", "backends/dir"] },
  "backends/dir": { may: [...CORE, "arrow", "backends/dir"] },
  ...inDirectory({
    concurrency: { may: [] },
    format: { may: ["concurrency"], parts: ["*", "local", "files", "versions", "changes"] },
    ownership: { may: ["concurrency", "format"] },
    engine: { may: ["concurrency", "format", "backends/*"] },
    stores: { may: ["concurrency", "format", "backends/*", "backends/resilience"] },
    jobs: { may: ["concurrency", "format", "ownership"] },
    data: { may: ["concurrency", "engine", "format"] },
    catalog: {
      may: ["batch", "concurrency", "data", "engine", "format", "stores"],
      parts: ["state", "manifest", "commits", "base", "exchange", "*"],
    },
    batch: { may: ["catalog", "concurrency", "format", "jobs", "ownership"] },
    idempotency: { may: ["format", "ownership"] },
    vending: { may: ["stores", "backends/*", "backends/upstream-identity"] },
    upkeep: {
      may: ["batch", "catalog", "concurrency", "data", "engine", "format", "operations", "ownership"],
    },
    operations: {
      may: [
        "batch",
        "catalog",
        "concurrency",
        "data",
        "engine",
        "format",
        "jobs",
        "ownership",
        "stores",
        "upkeep",
        "vending",
        "*",
      ],
    },
    maintenance: { may: ["batch", "catalog", "format", "idempotency", "jobs", "upkeep", "*"] },
  }),
  wires: { may: [...CORE, "dialects", "pipeline", "transcode"] },
  "wires/flight": { may: [...CORE, "arrow", "pipeline", "sql", "transcode", "wires/*", "wires/grpc"] },
  server: {
    may: [...CORE, "pipeline", "transcode", "wires"],
    parts: ["requests", "connections", "tls", "port", "app", "*", "admin"],
  },
  "observability/log": { may: CORE },
  events: { may: [...CORE, "observability/log"] },
  "observability/metrics": { may: [...CORE, "pipeline"] },
  config: { may: [...CORE, "pipeline"] },
  client: { may: [...CORE, "arrow", "backends", "dialects", "pipeline", "transcode"] },
  console: { may: [...CORE, "arrow/rows", "client", "sql/statement-text.ts"], isForBrowsers: true },
  "wires/mcp": { may: [...CORE, "arrow/rows", "client"] },
  // The queries of materialized views are in the language of filters.
  sql: { may: [...CORE, "arrow", "client", "backends/*", "backends/dir/engine/sql/tokens.ts"] },
  gateway: {
    may: [
      ...CORE,
      ...[
        "arrow",
        "auth",
        "backends",
        "config",
        "dialects",
        "events",
        "observability/log",
        "wires/mcp",
        "observability/metrics",
        "server/openapi",
      ],
      ...["pipeline", "server", "sql", "transcode", "wires"],
    ],
  },
  cli: { may: ["*"] },
  "index.ts": { may: ["*"] },
};

/** Makes the rules of folders of the directory backend, which name each other by their last part. */
function inDirectory(folders: Readonly<Record<string, FolderRule>>): Record<string, FolderRule> {
  const place = (name: string) => (name === "*" || name in folders ? `backends/dir/${name}` : name);
  return Object.fromEntries(
    Object.entries(folders).map(([name, rule]) => [
      `backends/dir/${name}`,
      { ...rule, may: [...CORE, "arrow", ...rule.may.map(place)] },
    ]),
  );
}
