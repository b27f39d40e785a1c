import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { LanceClient } from "../../test/support/client.ts";
import { columns, floats, structs } from "./bodies.ts";
import { addRows, namespaceRow, setFragments, tableRow, tableRows } from "./roots.ts";

const MIB = 1024 * 1024;

/** Sends a request: the path below `/v1`, and a JSON or an Arrow body. */
export type Send = (path: string, body: object | Uint8Array) => Promise<void>;

/** A call, and the root on which it is measured. */
export interface LoopCall {
  readonly title: string;
  /** Fills an empty root before the gateway starts. Default: it stays empty. */
  readonly fill?: (root: string) => Promise<void>;
  /** Prepares the running gateway; its first call has loaded the catalog. Default: nothing. */
  readonly prepare?: (send: Send, root: string) => Promise<void>;
  /** Returns the answer of a REST upstream of which the gateway is in front. Default: it serves a root. */
  readonly upstream?: () => object;
  /** The measured calls, over REST or with another client. */
  readonly run: (send: Send, clients: LoopClients) => Promise<unknown>;
}

/** Clients of the other protocols. */
export interface LoopClients {
  readonly grpc: LanceClient;
  /** Sends an empty message to a method over Connect, and reads the answer without decoding it. */
  readonly connect: (method: string, codec: "proto" | "json") => Promise<void>;
}

/** The measured calls, for catalogs of a number of tables. */
export function loopCalls(tables: number): Readonly<Record<string, LoopCall>> {
  const many = (count: number) => (root: string) =>
    addRows(root, [namespaceRow("ns"), ...tableRows("ns", count)]);
  return {
    load: {
      title: `read a manifest to which another writer has added ${tables.toLocaleString("en")} tables`,
      fill: many(10),
      prepare: (_, root) => addRows(root, [namespaceRow("other"), ...tableRows("other", tables)]),
      run: (send) => send("table/other$t0000001/exists", {}),
    },
    changes: {
      title: "read 60,000 rows that another writer has added to 300,000",
      fill: many(300_000),
      prepare: (_, root) => addRows(root, [namespaceRow("other"), ...tableRows("other", 60_000)]),
      run: (send) => send("table/other$t0000001/exists", {}),
    },
    cascade: {
      title: "drop a namespace of 40,000 tables",
      fill: many(40_000),
      run: (send) => send("namespace/ns/drop", { behavior: "Cascade" }),
    },
    written: {
      title: "list the written ones of 20,000 declared tables",
      fill: many(20_000),
      run: (send) => send("namespace/ns/table/list?include_declared=false", {}),
    },
    page: {
      title: "list a page of 10,000 of 100,000 tables",
      fill: many(100_000),
      run: (send) => send("namespace/ns/table/list?limit=10000", {}),
    },
    directories: {
      title: "list a page of a root of 50,000 directories",
      async fill(root) {
        const names = Array.from({ length: 50_000 }, (_, i) => `${((i * 7919) % 50_000) + 1e6}.lance`);
        for (const name of names) await mkdir(join(root, name, "_versions"), { recursive: true });
      },
      prepare: async (_, root) =>
        void (await mkdir(join(root, "new.lance", "_versions"), { recursive: true })),
      run: (send) => send("namespace/$/table/list?limit=10", {}),
    },
    batch: {
      title: "declare 5,000 tables by a single call",
      fill: many(1),
      run: (send) => send("table/batch-commit", { operations: declarations(5000) }),
    },
    nested: {
      title: "declare 64 tables beside 40,000 in nested directories",
      fill: (root) =>
        addRows(root, [
          namespaceRow("ns"),
          ...Array.from({ length: 40_000 }, (_, i) => ({ ...tableRow(`ns$n${i}`), location: `a/${i}` })),
        ]),
      run: async (send) => {
        await Promise.all(Array.from({ length: 64 }, (_, i) => send(`table/ns$new${i}/declare`, {})));
      },
    },
    words: {
      title: "filter by a list of 49,000 numbers",
      prepare: (send) => send("table/wide/create", columns(2)),
      run: (send) =>
        send("table/wide/query", {
          k: 1,
          filter: `c0 IN (${Array.from({ length: 49_000 }, (_, i) => i + 10 ** 9).join(", ")})`,
        }),
    },
    conditions: {
      title: "filter by 8,000 conditions",
      prepare: (send) => send("table/wide/create", columns(2)),
      run: (send) =>
        send("table/wide/query", {
          k: 1,
          filter: Array.from({ length: 8000 }, (_, i) => `c0 = ${i}`).join(" OR "),
        }),
    },
    letters: {
      title: "filter by a name of 1 MiB that has letters outside of ASCII",
      prepare: (send) => send("table/wide/create", columns(2)),
      run: (send) =>
        send("table/wide/query", { k: 1, filter: `é${"a".repeat(MIB - 20)} = 1` }).catch(() => {}),
    },
    transaction: {
      title: "look for a transaction in 300 versions of up to 300 fragments",
      async prepare(send) {
        await send("table/rows/create", columns(8));
        for (let i = 0; i < 300; i++) await send("table/rows/insert", columns(8));
      },
      run: (send) =>
        send("transaction/rows$00000000-0000-4000-8000-000000000000/describe", {}).catch(() => {}),
    },
    create: {
      title: "create a table of 4,000 structs, 6 levels deep",
      prepare: (send) => send("table/small/create", columns(2)),
      run: (send) => send("table/deep/create", structs(4000, 6)),
    },
    metadata: {
      title: "create a table with 10,000 entries of metadata",
      prepare: (send) => send("table/small/create", columns(2)),
      run: (send) => send("table/rows/create", columns(2, 1, numbered(10_000))),
    },
    schema: {
      title: "set 10,000 entries of a schema's metadata",
      prepare: (send) => send("table/rows/create", columns(2)),
      run: (send) => send("table/rows/schema_metadata/update", Object.fromEntries(numbered(10_000))),
    },
    fragments: {
      title: "set the metadata of a table of 100,000 fragments",
      async prepare(send, root) {
        await send("table/rows/create", columns(8));
        await setFragments(join(root, "rows.lance"), 100_000);
      },
      run: (send) => send("table/rows/schema_metadata/update", { a: "b" }),
    },
    fields: {
      title: "set the metadata of 10,000 columns",
      prepare: (send) => send("table/wide/create", columns(10_000)),
      run: (send) =>
        send("table/wide/update_field_metadata", {
          updates: Array.from({ length: 10_000 }, (_, i) => ({ path: `c${i}`, metadata: { unit: "m" } })),
        }),
    },
    wide: {
      title: "describe a table of 10,000 columns in detail",
      prepare: (send) => send("table/wide/create", columns(10_000)),
      run: (send) => send("table/wide/describe", { load_detailed_metadata: true }),
    },
    columns: {
      title: "query 1,000 columns by their names",
      prepare: (send) => send("table/wide/create", columns(1000)),
      run: (send) =>
        send("table/wide/query", {
          k: 10,
          columns: { column_names: Array.from({ length: 1000 }, (_, i) => `c${i}`) },
        }),
    },
    deep: {
      title: "describe a table of 4,000 structs, 6 levels deep, in detail",
      prepare: (send) => send("table/deep/create", structs(4000, 6)),
      run: (send) => send("table/deep/describe", { load_detailed_metadata: true }),
    },
    upload: {
      title: "insert 96 MiB",
      prepare: (send) => send("table/rows/create", floats(1)),
      run: (send) => send("table/rows/insert", floats(24 * MIB)),
    },
    result: {
      title: "query 96 MiB",
      prepare: (send) => send("table/rows/create", floats(24 * MIB)),
      run: (send) => send("table/rows/query", { k: 24 * MIB }),
    },
    merge: {
      title: "merge 500,000 rows",
      prepare: (send) => send("table/rows/create", columns(2, 500_000)),
      run: (send) => send("table/rows/merge_insert?on=c0&when_matched_update_all=true", columns(2, 500_000)),
    },
    properties: {
      title: "describe a table with 1 MiB of properties",
      prepare: (send) => send("table/big/declare", { properties: properties(MIB - 20_000) }),
      run: (send) => send("table/big/describe", {}),
    },
    vector: {
      title: "search for a vector of 700,000 numbers in a JSON body",
      prepare: (send) => send("table/rows/create", columns(2)),
      run: (send) => {
        const single_vector = Array.from({ length: 700_000 }, Math.random);
        return send("table/rows/query", { k: 1, vector: { single_vector } }).catch(() => {});
      },
    },
    json: {
      title: "search for 4,000 vectors of 128 numbers in a JSON body",
      prepare: (send) => send("table/rows/create", columns(2)),
      run: (send) => {
        const multi_vector = Array.from({ length: 4000 }, () => Array.from({ length: 128 }, Math.random));
        return send("table/rows/query", { k: 1, vector: { multi_vector } }).catch(() => {});
      },
    },
  };
}

function numbered(count: number): Map<string, string> {
  return new Map(Array.from({ length: count }, (_, i) => [`key${i}`, `value${i}`]));
}

function declarations(count: number): object[] {
  return Array.from({ length: count }, (_, i) => ({ declare_table: { id: ["ns", `d${i}`] } }));
}

function properties(bytes: number): Record<string, string> {
  const value = "x".repeat(Math.floor(bytes / 1000) - 10);
  return Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key${i}`, value]));
}
