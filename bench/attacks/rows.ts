import { randomFillSync } from "node:crypto";
import {
  Field,
  FixedSizeList,
  Float32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
} from "apache-arrow";

const DIMENSIONS = 128;
const BATCH_ROWS = 4096;

/** Returns an Arrow IPC stream of at least `bytes` incompressible bytes: vectors of noise. */
export function noiseStream(bytes: number): Uint8Array {
  const vector = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), false));
  const schema = new Schema([new Field("vector", vector, false)]);
  const batches: RecordBatch[] = [];
  for (let made = 0; made < bytes; made += BATCH_ROWS * DIMENSIONS * 4) {
    const data = Float32Array.from(randomFillSync(new Int32Array(BATCH_ROWS * DIMENSIONS)));
    const values = makeData({ type: new Float32(), data });
    const column = makeData({ type: vector, length: BATCH_ROWS, nullCount: 0, child: values });
    const rows = makeData({
      type: new Struct(schema.fields),
      length: BATCH_ROWS,
      nullCount: 0,
      children: [column],
    });
    batches.push(new RecordBatch(schema, rows));
  }
  return tableToIPC(new Table(schema, batches), "stream");
}
