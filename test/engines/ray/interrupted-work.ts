import { join } from "node:path";
import type { GatewayProcess } from "../../clients/support/gateway.ts";
import { runTool } from "../../clients/support/tools.ts";
import { MAIN, NODE } from "../../support/node-command.ts";

/** Work of a kind on the cluster, while which something dies. */
export interface InterruptedWork {
  readonly name: string;
  /** Kind of its job. */
  readonly kind: string;
  /** How the processes of the workers that do it begin. */
  readonly worker: string;
  /** Returns the table of the job; by default the one that is made. */
  readonly target?: (table: string) => string;
  /** Makes a table. Default: it was made before. */
  readonly make?: (table: string) => Promise<unknown>;
  /** Asks for the work; resolves when its caller has an answer. Default: upkeep finds the table. */
  readonly start?: (table: string) => Promise<unknown>;
  /** Checks that the work has been done once, and that the table has all its rows. */
  readonly check: (table: string) => Promise<unknown>;
}

/** Where the work is done. */
export interface Place {
  readonly python: string;
  readonly root: string;
  /** The files of an import. */
  readonly files: string;
  readonly gateway: () => Pick<GatewayProcess, "uri">;
}

/** Runs a session of Python on the gateway of a place; returns the last line of its output. */
export async function runSession(place: Place, program: string, ...args: readonly string[]): Promise<string> {
  const path = join(import.meta.dirname, program);
  const output = await runTool(place.python, [path, place.gateway().uri, ...args]);
  return output.trim().split("\n").at(-1) ?? "";
}

const [node, ...flags] = NODE;

/** Runs a command on the root of a place. */
export function runCommand({ root }: Pick<Place, "root">, ...args: readonly string[]): Promise<string> {
  return runTool(node, [...flags, MAIN, ...args, "--root", root]);
}

/** Returns one work of each kind that a cluster does. */
export function createWorks(place: Place): readonly InterruptedWork[] {
  const session = (program: string, ...args: readonly string[]) => runSession(place, program, ...args);
  const check = (what: string) => (table: string) => session("kills.py", "check", what, table);
  const call = async (path: string, body: object) => {
    const answer = await fetch(`${place.gateway().uri}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "respond-async" },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  };
  const index = (name: string, worker: string, body: object): InterruptedWork => ({
    ...{ name, worker, kind: "create_index", check: check("index") },
    start: (table) => call(`table/${table}/create_index`, { ...body, name }),
  });
  const vectors = { column: "vector", index_type: "IVF_FLAT", num_partitions: 8 };
  return [
    index("vectors", "ray::PoolActor", vectors),
    index("words", "ray::PoolActor", { column: "words", index_type: "FTS" }),
    index("labels", "ray::_build_segment", { column: "labels", index_type: "LABEL_LIST" }),
    {
      ...{ name: "column", kind: "backfill_column", worker: "ray::fill_fragments", check: check("column") },
      start: (table) => call(`table/${table}/backfill_column`, { column: "wide" }),
    },
    {
      ...{ name: "view", kind: "refresh_view", worker: "ray::write_rows", check: check("view") },
      target: (table) => `${table}_view`,
      start: (table) => call(`materialized_view/${table}_view/refresh`, { cluster: "ray", concurrency: 2 }),
    },
    {
      ...{ name: "compaction", kind: "compact_table", worker: "ray::_rewrite" },
      make: (table) => session("compaction.py", "table", table),
      check: (table) => session("compaction.py", "await", table),
    },
    {
      ...{ name: "import", kind: "import_files", worker: "ray::write_files" },
      make: async () => {},
      start: (table) =>
        runCommand(place, "import", join(place.files, "in"), table, "--engine", "ray", "--format", "parquet"),
      check: (table) => session("imports.py", "compare", table),
    },
  ];
}
