import { randomBytes, randomFillSync } from "node:crypto";
import {
  type Data,
  Field,
  FixedSizeList,
  Float32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

const DIMENSIONS = 128;
const BATCH_ROWS = 4096;

/** Number of characters of a text, which are all `a` and `b`: a pattern matches part of it at many places. */
const TEXT_LENGTH = 100;

function textOf(): string {
  return Array.from(randomBytes(TEXT_LENGTH), (byte) => (byte % 2 === 0 ? "a" : "b")).join("");
}

/** Returns an Arrow IPC stream of at least `bytes` incompressible bytes, vectors of noise, with a text in each row. */
export function noiseStream(bytes: number): Uint8Array {
  const vector = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), false));
  const schema = new Schema([new Field("vector", vector, false), new Field("s", new Utf8(), false)]);
  const texts = vectorFromArray(Array.from({ length: BATCH_ROWS }, textOf), new Utf8()).data[0] as Data<Utf8>;
  const batches: RecordBatch[] = [];
  for (let made = 0; made < bytes; made += BATCH_ROWS * DIMENSIONS * 4) {
    const data = Float32Array.from(randomFillSync(new Int32Array(BATCH_ROWS * DIMENSIONS)));
    const values = makeData({ type: new Float32(), data });
    const column = makeData({ type: vector, length: BATCH_ROWS, nullCount: 0, child: values });
    const rows = makeData({
      type: new Struct(schema.fields),
      length: BATCH_ROWS,
      nullCount: 0,
      children: [column, texts],
    });
    batches.push(new RecordBatch(schema, rows));
  }
  return tableToIPC(new Table(schema, batches), "stream");
}
