import { type Connection, connect, Index, type Table } from "@lancedb/lancedb";
import { tableFromIPC } from "apache-arrow";
import { type Draw, FIRST_ROWS, rowsOf } from "./work.ts";

/** A table of the local library, with the rows and indices of the gateway's. */
export interface LocalTable {
  add(id: number): Promise<void>;
  optimize(): Promise<void>;
  nearest(vector: number[]): Promise<void>;
  words(word: string): Promise<void>;
  close(): void;
}

/** Creates a table with the library in this process. */
export async function createLocal(directory: string, draw: Draw): Promise<LocalTable> {
  const db: Connection = await connect(directory);
  const rows = (ids: readonly number[]) => tableFromIPC(rowsOf(ids, draw));
  const table: Table = await db.createTable("soak", rows(Array.from({ length: FIRST_ROWS }, (_, id) => id)));
  await table.createIndex("id", { config: Index.btree() });
  await table.createIndex("text", { config: Index.fts() });
  await table.createIndex("vector", { config: Index.ivfFlat({ distanceType: "l2" }) });
  return {
    async add(id) {
      await table.add(rows([id]));
    },
    async optimize() {
      await table.optimize();
    },
    async nearest(vector) {
      await table.query().nearestTo(vector).limit(10).toArrow();
    },
    async words(word) {
      await table
        .query()
        .fullTextSearch(word, { columns: ["text"] })
        .limit(10)
        .toArrow();
    },
    close() {
      table.close();
      db.close();
    },
  };
}
