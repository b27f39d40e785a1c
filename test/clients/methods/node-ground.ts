import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Connection, connect, type Table } from "@lancedb/lancedb";
import {
  Table as ArrowTable,
  Field,
  FixedSizeList,
  Float32,
  Int64,
  Schema,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

/** A connection with a small table, through the gateway or on a directory. */
export interface Ground {
  readonly db: Connection;
  readonly t: Table;
}

/** Where calls are tried. */
export interface Place {
  open(): Promise<Ground>;
  /** Removes what the call has made. */
  clear(): Promise<void>;
}

const TEXTS = ["red apple", "green apple", "blue plum"];

/** Rows with a number, twice, a text and a vector. */
export function rowsOf(...ids: readonly number[]): ArrowTable {
  const numbers = ids.map(BigInt);
  const vector = new FixedSizeList(2, new Field("item", new Float32(), true));
  const columns = {
    id: vectorFromArray(numbers, new Int64()),
    key: vectorFromArray(numbers, new Int64()),
    text: vectorFromArray(
      ids.map((id) => TEXTS[id % TEXTS.length]),
      new Utf8(),
    ),
    vector: vectorFromArray(
      ids.map((id) => [id, 1]),
      vector,
    ),
  };
  const schema = new Schema(
    Object.entries(columns).map(([name, { type }]) => new Field(name, type, name !== "key")),
  );
  return new ArrowTable(schema, columns);
}

const withTable = async (db: Connection): Promise<Ground> => ({
  db,
  t: await db.createTable("t", rowsOf(1, 2, 3)),
});

/** The library on a directory of its own for each call. */
export function localPlace(): Place {
  let path = "";
  return {
    async open() {
      path = mkdtempSync(join(tmpdir(), "lancedb-methods-"));
      // Without stable row ids the library makes no views of a table.
      return withTable(await connect(path, { storageOptions: { newTableEnableStableRowIds: "true" } }));
    },
    async clear() {
      rmSync(path, { recursive: true });
    },
  };
}

/** The client of a gateway, whose tables are dropped after each call through its own address. */
export function remotePlace(uri: string, directUri: string): Place {
  return {
    open: async () => withTable(await connect("db://shop", { apiKey: "k", hostOverride: uri })),
    async clear() {
      const db = await connect("db://admin", { apiKey: "k", hostOverride: directUri });
      for (const name of (await db.listNamespaces()).namespaces)
        await db.dropNamespace([name], { behavior: "cascade" });
      for (const name of await db.tableNames()) await db.dropTable(name);
      db.close();
    },
  };
}
