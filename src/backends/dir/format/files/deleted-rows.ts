import { Field, makeData, RecordBatch, Schema, Struct, Table, tableToIPC, Uint32 } from "apache-arrow";

const SCHEMA = new Schema([new Field("row_id", new Uint32(), false)]);

/** Encodes the offsets of deleted rows as an Arrow file. */
export function encodeDeletions(offsets: Uint32Array): Uint8Array {
  const column = makeData({ type: new Uint32(), length: offsets.length, nullCount: 0, data: offsets });
  const children = [column];
  const data = makeData({ type: new Struct(SCHEMA.fields), length: offsets.length, nullCount: 0, children });
  return tableToIPC(new Table(SCHEMA, new RecordBatch(SCHEMA, data)), "file");
}
