import type { Connection, Table } from "@lancedb/lancedb";
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

const FRUIT = ["red apple", "green plum", "red pear", "blue plum", "yellow quince"];

/** Returns rows with an id, a text and a vector of two components, or of `width`. */
export function fruit(count: number, first = 0, width = 2): ArrowTable {
  const ids = Array.from({ length: count }, (_, i) => first + i);
  const vector = new FixedSizeList(width, new Field("item", new Float32(), true));
  const columns = {
    id: vectorFromArray(ids.map(BigInt), new Int64()),
    text: vectorFromArray(
      ids.map((id) => FRUIT[id % FRUIT.length]),
      new Utf8(),
    ),
    vector: vectorFromArray(
      ids.map((id) => Array.from({ length: width }, (_, i) => (i === 0 ? id : i - 1))),
      vector,
    ),
  };
  const fields = Object.entries(columns).map(([name, { type }]) => new Field(name, type, true));
  return new ArrowTable(new Schema(fields), columns);
}

/** Opens the table that a kind of work is about. */
export const t = (db: Connection): Promise<Table> => db.openTable("t");

export const idsOf = (rows: readonly { id: bigint }[]) => rows.map(({ id }) => Number(id));
