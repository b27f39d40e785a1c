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
import { WORDS } from "./attack.ts";

const DIMENSIONS = 128;
const BATCH_ROWS = 4096;

/** Number of characters of a text, which are all `a` and `b`: a pattern matches part of it at many places. */
const TEXT_LENGTH = 100;

function textOf(): string {
  return Array.from(randomBytes(TEXT_LENGTH), (byte) => (byte % 2 === 0 ? "a" : "b")).join("");
}

/** Returns five words of six letters, of which there are six: many words are near to each one. */
function wordsOf(): string {
  return Array.from({ length: 5 }, () =>
    String.fromCharCode(...randomBytes(6).map((byte) => 97 + (byte % 6))),
  ).join(" ");
}

/** Returns an Arrow IPC stream of at least `bytes` incompressible bytes, vectors of noise, with a text and a few words in each row. */
export function noiseStream(bytes: number): Uint8Array {
  const vector = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), false));
  const schema = new Schema([
    new Field("vector", vector, false),
    new Field("s", new Utf8(), false),
    new Field(WORDS, new Utf8(), false),
  ]);
  const columnOf = (make: () => string) =>
    vectorFromArray(Array.from({ length: BATCH_ROWS }, make), new Utf8()).data[0] as Data<Utf8>;
  const texts = columnOf(textOf);
  const batches: RecordBatch[] = [];
  for (let made = 0; made < bytes; made += BATCH_ROWS * DIMENSIONS * 4) {
    const data = Float32Array.from(randomFillSync(new Int32Array(BATCH_ROWS * DIMENSIONS)));
    const values = makeData({ type: new Float32(), data });
    const column = makeData({ type: vector, length: BATCH_ROWS, nullCount: 0, child: values });
    const rows = makeData({
      type: new Struct(schema.fields),
      length: BATCH_ROWS,
      nullCount: 0,
      children: [column, texts, columnOf(wordsOf)],
    });
    batches.push(new RecordBatch(schema, rows));
  }
  return tableToIPC(new Table(schema, batches), "stream");
}
