import type { CommandDefinition } from "./command.ts";

/** A command, or one of the commands of a group, in the list of the help. */
export interface Loadable {
  readonly summary: string;
  load(): Promise<CommandDefinition>;
}

/** Several commands under a name. */
export interface CommandGroup {
  readonly summary: string;
  readonly commands: Readonly<Record<string, Loadable>>;
}

/** A command in the list of the help. */
export type CommandEntry = (Loadable | CommandGroup) & {
  /** Heading under which the help lists the command. */
  readonly group: string;
};

/** The commands, each loaded on use: help, completion and docs/cli.md derive from them. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    group: "Server",
    summary: "serve a directory of Lance tables, or an upstream catalog",
    load: async () => (await import("./server/serve.ts")).serve,
  },
  ready: {
    group: "Server",
    summary: "ask the gateway on this machine whether it can answer calls",
    load: async () => (await import("./server/serve.ts")).ready,
  },
  config: {
    group: "Server",
    summary: "check or print the configuration of serve, or print the schema of its file",
    load: async () => (await import("./server/config.ts")).config,
  },
  mcp: {
    group: "Server",
    summary: "serve a catalog to an agent, over standard input and output (MCP)",
    load: async () => (await import("./server/mcp.ts")).mcp,
  },
  ls: {
    group: "Data",
    summary: "list the namespaces and tables of a namespace",
    load: async () => (await import("./objects/read-objects.ts")).ls,
  },
  describe: {
    group: "Data",
    summary: "describe a table or a namespace",
    load: async () => (await import("./objects/read-objects.ts")).describe,
  },
  create: {
    group: "Data",
    summary: "create a namespace (import creates tables)",
    load: async () => (await import("./objects/change-objects.ts")).create,
  },
  drop: {
    group: "Data",
    summary: "remove a table with its data, or a namespace with --namespace",
    load: async () => (await import("./objects/change-objects.ts")).drop,
  },
  rename: {
    group: "Data",
    summary: "give a table another name, another namespace or both",
    load: async () => (await import("./objects/change-objects.ts")).rename,
  },
  count: {
    group: "Data",
    summary: "count the rows of a table",
    load: async () => (await import("./objects/read-objects.ts")).count,
  },
  query: {
    group: "Data",
    summary: "print rows of a table, also as CSV or JSON lines",
    load: async () => (await import("./rows/query.ts")).query,
  },
  sql: {
    group: "Data",
    summary: "run statements in SQL over tables and print their rows",
    load: async () => (await import("./rows/sql.ts")).sql,
  },
  import: {
    group: "Data",
    summary: "import the rows of a file, or of standard input with -",
    load: async () => (await import("./rows/import.ts")).importRows,
  },
  export: {
    group: "Data",
    summary: "write rows of a table to a file, or to standard output with -",
    load: async () => (await import("./rows/export.ts")).exportRows,
  },
  stats: {
    group: "Tables",
    summary: "print the figures of a table: rows, bytes, fragments, indices",
    load: async () => (await import("./objects/read-objects.ts")).stats,
  },
  prewarm: {
    group: "Tables",
    summary: "read a table into the gateway's cache on disk",
    load: async () => (await import("./upkeep/prewarm.ts")).prewarm,
  },
  versions: {
    group: "Tables",
    summary: "list and describe the versions of a table",
    commands: {
      ls: {
        summary: "list versions, the newest first",
        load: async () => (await import("./objects/versions.ts")).versionsLs,
      },
      describe: {
        summary: "describe a version",
        load: async () => (await import("./objects/versions.ts")).versionsDescribe,
      },
    },
  },
  restore: {
    group: "Tables",
    summary: "bring the rows and columns of an old version back, as a new version",
    load: async () => (await import("./objects/versions.ts")).restore,
  },
  tags: {
    group: "Tables",
    summary: "list, create, move and delete the tags of a table",
    commands: {
      ls: { summary: "list tags", load: async () => (await import("./objects/refs.ts")).tagsLs },
      create: {
        summary: "give a version a name",
        load: async () => (await import("./objects/refs.ts")).tagsCreate,
      },
      update: {
        summary: "move a tag to another version",
        load: async () => (await import("./objects/refs.ts")).tagsUpdate,
      },
      delete: {
        summary: "delete a tag; its version stays",
        load: async () => (await import("./objects/refs.ts")).tagsDelete,
      },
    },
  },
  branches: {
    group: "Tables",
    summary: "list, create and delete the branches of a table",
    commands: {
      ls: { summary: "list branches", load: async () => (await import("./objects/refs.ts")).branchesLs },
      create: {
        summary: "create a branch of a version",
        load: async () => (await import("./objects/refs.ts")).branchesCreate,
      },
      delete: {
        summary: "delete a branch",
        load: async () => (await import("./objects/refs.ts")).branchesDelete,
      },
    },
  },
  index: {
    group: "Tables",
    summary: "list, create, drop and watch the indices of a table",
    commands: {
      ls: { summary: "list indices", load: async () => (await import("./upkeep/indices.ts")).indexLs },
      create: {
        summary: "build an index of a column",
        load: async () => (await import("./upkeep/indices.ts")).indexCreate,
      },
      wait: {
        summary: "wait until indices have all rows",
        load: async () => (await import("./upkeep/indices.ts")).indexWait,
      },
      stats: {
        summary: "print the figures of an index",
        load: async () => (await import("./upkeep/indices.ts")).indexStats,
      },
      drop: {
        summary: "drop an index",
        load: async () => (await import("./upkeep/indices.ts")).indexDrop,
      },
    },
  },
  jobs: {
    group: "Tables",
    summary: "list, describe, await and cancel work in the background",
    commands: {
      ls: {
        summary: "list jobs, the newest first",
        load: async () => (await import("./upkeep/jobs.ts")).jobsLs,
      },
      describe: {
        summary: "describe a job",
        load: async () => (await import("./upkeep/jobs.ts")).jobsDescribe,
      },
      wait: {
        summary: "wait until a job has ended; if it fails, so does the command",
        load: async () => (await import("./upkeep/jobs.ts")).jobsWait,
      },
      cancel: { summary: "cancel a job", load: async () => (await import("./upkeep/jobs.ts")).jobsCancel },
    },
  },
  context: {
    group: "Connections",
    summary: "save connections, and choose the one that commands use",
    commands: {
      add: {
        summary: "save a connection",
        load: async () => (await import("./context.ts")).contextAdd,
      },
      use: {
        summary: "use a saved connection where no option names the data",
        load: async () => (await import("./context.ts")).contextUse,
      },
      ls: {
        summary: "list the saved connections",
        load: async () => (await import("./context.ts")).contextLs,
      },
      rm: {
        summary: "remove a saved connection",
        load: async () => (await import("./context.ts")).contextRm,
      },
    },
  },
  bench: {
    group: "Maintenance",
    summary: "measure how fast a catalog answers",
    load: async () => (await import("./server/bench.ts")).bench,
  },
  keys: {
    group: "Server",
    summary: "create, list and revoke API keys",
    load: async () => (await import("./server/keys.ts")).keys,
  },
  policy: {
    group: "Server",
    summary: "check, test and explain policies, and print those of the roles",
    load: async () => (await import("./server/policy.ts")).policy,
  },
  gc: {
    group: "Maintenance",
    summary: "find what crashes left in a directory, and remove it with --delete",
    load: async () => (await import("./upkeep/gc.ts")).gc,
  },
  optimize: {
    group: "Maintenance",
    summary: "compact tables, update their indices and prune old versions, once",
    load: async () => (await import("./upkeep/optimize.ts")).optimize,
  },
  migrate: {
    group: "Maintenance",
    summary: "register the tables of a version-1 directory in its manifest",
    load: async () => (await import("./upkeep/migrate.ts")).migrate,
  },
};
