import type { Command } from "./command.ts";

/** The commands beside `serve`, each loaded when it is used. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  ls: async () => (await import("./ls.ts")).ls,
  describe: async () => (await import("./describe.ts")).describe,
  create: async () => (await import("./create.ts")).create,
  drop: async () => (await import("./drop.ts")).drop,
  rename: async () => (await import("./rename.ts")).rename,
  count: async () => (await import("./count.ts")).count,
  query: async () => (await import("./query.ts")).query,
  import: async () => (await import("./import.ts")).importRows,
  export: async () => (await import("./export.ts")).exportRows,
  bench: async () => (await import("./bench.ts")).bench,
  gc: async () => (await import("./gc.ts")).gc,
  migrate: async () => (await import("./migrate.ts")).migrate,
};
