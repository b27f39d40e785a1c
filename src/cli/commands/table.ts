import type { CommandDefinition } from "./command.ts";

/** A command in the list of the help. */
export interface CommandEntry {
  /** Heading under which the help lists the command. */
  readonly group: string;
  readonly summary: string;
  load(): Promise<CommandDefinition>;
}

/** The commands, each loaded on use. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    group: "Server",
    summary: "serve a directory of Lance tables, or an upstream catalog",
    load: async () => (await import("./serve.ts")).serve,
  },
  config: {
    group: "Server",
    summary: "check or print the configuration of serve, or print the schema of its file",
    load: async () => (await import("./config.ts")).config,
  },
  ls: {
    group: "Catalog",
    summary: "list the namespaces and tables of a namespace",
    load: async () => (await import("./ls.ts")).ls,
  },
  describe: {
    group: "Catalog",
    summary: "describe a table or a namespace",
    load: async () => (await import("./describe.ts")).describe,
  },
  create: {
    group: "Catalog",
    summary: "create a namespace (import creates tables)",
    load: async () => (await import("./create.ts")).create,
  },
  drop: {
    group: "Catalog",
    summary: "remove a table with its data, or a namespace with --namespace",
    load: async () => (await import("./drop.ts")).drop,
  },
  rename: {
    group: "Catalog",
    summary: "give a table another name, another namespace or both",
    load: async () => (await import("./rename.ts")).rename,
  },
  count: {
    group: "Data",
    summary: "count the rows of a table",
    load: async () => (await import("./count.ts")).count,
  },
  query: {
    group: "Data",
    summary: "print rows of a table; with --json one object in each line",
    load: async () => (await import("./query.ts")).query,
  },
  import: {
    group: "Data",
    summary: "put the rows of an Arrow or Parquet file into a table",
    load: async () => (await import("./import.ts")).importRows,
  },
  export: {
    group: "Data",
    summary: "write rows of a table into an Arrow or Parquet file",
    load: async () => (await import("./export.ts")).exportRows,
  },
  bench: {
    group: "Maintenance",
    summary: "measure how fast a catalog answers",
    load: async () => (await import("./bench.ts")).bench,
  },
  keys: {
    group: "Security",
    summary: "create, list and revoke API keys",
    load: async () => (await import("./keys.ts")).keys,
  },
  policy: {
    group: "Security",
    summary: "check, test and explain policies, and print those of the roles",
    load: async () => (await import("./policy.ts")).policy,
  },
  gc: {
    group: "Maintenance",
    summary: "find what crashes left in a directory, and remove it with --delete",
    load: async () => (await import("./gc.ts")).gc,
  },
  optimize: {
    group: "Maintenance",
    summary: "compact tables, update their indices and prune old versions, once",
    load: async () => (await import("./optimize.ts")).optimize,
  },
  migrate: {
    group: "Maintenance",
    summary: "register the tables of a version-1 directory in its manifest",
    load: async () => (await import("./migrate.ts")).migrate,
  },
};
