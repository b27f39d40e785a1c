import {
  type DataType,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int32,
  List,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Uint8,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

/** A column of a stream that {@link streamOf} makes. */
export interface Column {
  readonly type: DataType;
  readonly values: readonly unknown[];
  /** Default: true. */
  readonly nullable?: boolean;
}

/** Encodes the given columns, which must have equal lengths, as an Arrow IPC stream. */
export function streamOf(columns: Readonly<Record<string, Column>>): Uint8Array {
  const fields = Object.entries(columns).map(
    ([name, { type, nullable = true }]) => new Field(name, type, nullable),
  );
  const schema = new Schema(fields);
  const [first] = Object.values(columns);
  if (first === undefined || first.values.length === 0) return tableToIPC(new Table(schema), "stream");
  const vectors = Object.entries(columns).map(([name, { type, values }]) => [
    name,
    vectorFromArray([...values], type),
  ]);
  return tableToIPC(new Table(schema, Object.fromEntries(vectors)), "stream");
}

/** Returns the type of vectors with components of the given type. */
export function vectorOf(dimension: number, component: DataType): FixedSizeList {
  return new FixedSizeList(dimension, new Field("item", component, true));
}

const ELEMENTS = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * Returns a table with every kind of vector column. The vectors of its eight rows are on the first axis, further from
 * the origin with each id: `f32`, `f64`, `f16`, `u8` (one more bit set in each row), `many` (lists of vectors) and
 * `inner.v` in a struct.
 */
export function vectorsStream(): Uint8Array {
  const inner = new Struct([new Field("v", vectorOf(2, new Float32()), true)]);
  const list = new List(new Field("item", vectorOf(2, new Float32()), true));
  const away = ELEMENTS.map((id) => [id, 0]);
  return streamOf({
    id: { type: new Int32(), values: ELEMENTS },
    f32: { type: vectorOf(2, new Float32()), values: away },
    f64: { type: vectorOf(2, new Float64()), values: away },
    f16: { type: vectorOf(2, new Float16()), values: away },
    u8: { type: vectorOf(2, new Uint8()), values: ELEMENTS.map((id) => [2 ** id - 1, 0]) },
    many: {
      type: list,
      values: ELEMENTS.map((id) => [
        [id, 0],
        [0, id],
      ]),
    },
    inner: { type: inner, values: away.map((v) => ({ v })) },
    text: { type: new Utf8(), values: ELEMENTS.map(String) },
  });
}

/** Texts to search, each with its index as its id, and vectors on a line. */
export const TEXTS = [
  "apple banana",
  "banana cherry",
  "cherry date apple",
  "the quick brown fox",
  "a fox jumps over the lazy dog",
  "pomme d'été",
] as const;

/** Returns a table of {@link TEXTS}: `id`, `body`, `title` (the words backwards) and `vector`. */
export function textsStream(): Uint8Array {
  return streamOf({
    id: { type: new Int32(), values: TEXTS.map((_, id) => id), nullable: false },
    body: { type: new Utf8(), values: TEXTS },
    title: { type: new Utf8(), values: TEXTS.map((text) => text.split(" ").reverse().join(" ")) },
    vector: { type: vectorOf(2, new Float32()), values: TEXTS.map((_, id) => [id, 0]) },
  });
}
