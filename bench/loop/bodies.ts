import {
  Field,
  Float32,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
} from "apache-arrow";

/**
 * Encodes rows of numbered columns, in each of which row `i` has `i`.
 *
 * @param metadata of the schema. Default: none.
 */
export function columns(count: number, rows = 1, metadata?: Map<string, string>): Uint8Array {
  const fields = Array.from({ length: count }, (_, i) => new Field(`c${i}`, new Int32(), false));
  return encode(
    fields,
    rows,
    fields.map(() => makeData({ type: new Int32(), data: Int32Array.from({ length: rows }, (_, i) => i) })),
    metadata,
  );
}

/** Encodes a column of floats. */
export function floats(rows: number): Uint8Array {
  const data = makeData({ type: new Float32(), data: new Float32Array(rows).map(() => Math.random()) });
  return encode([new Field("f", new Float32(), false)], rows, [data]);
}

/** Encodes a row of nested structs. */
export function structs(count: number, depth: number): Uint8Array {
  let [type, data]: [Int32 | Struct, ReturnType<typeof makeData>] = [
    new Int32(),
    makeData({ type: new Int32(), data: Int32Array.of(1) }),
  ];
  for (let level = 0; level < depth; level++) {
    type = new Struct([new Field(`level${level}`, type, false)]);
    data = makeData({ type: type as Struct, length: 1, nullCount: 0, children: [data] });
  }
  const fields = Array.from({ length: count }, (_, i) => new Field(`s${i}`, type, false));
  return encode(
    fields,
    1,
    fields.map(() => data),
  );
}

function encode(
  fields: readonly Field[],
  rows: number,
  children: readonly object[],
  metadata?: Map<string, string>,
): Uint8Array {
  const schema = new Schema([...fields], metadata);
  const data = makeData({
    type: new Struct(schema.fields),
    length: rows,
    nullCount: 0,
    children: children as never,
  });
  return tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), "stream");
}
