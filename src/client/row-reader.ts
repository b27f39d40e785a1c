import type { Data, DataType, RecordBatch, Vector } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** Reads an item of a column, which is not null. */
export type ReadItem = (column: Vector, index: number) => unknown;

/**
 * Creates a reader of the rows of a batch as names with values: lists as arrays, structs as objects, maps as objects or as arrays of pairs, and
 * everything else as the function says.
 *
 * @param ofType returns how items of any other type are read
 */
export function createRowReader(
  arrow: Arrow,
  ofType: (arrow: Arrow, type: DataType) => ReadItem,
): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  const readerOf = (type: DataType) => itemReader(arrow, type, ofType);
  return function* (batch) {
    const columns = batch.schema.fields.map(({ name, type }, at) => ({
      name,
      read: readerOf(type),
      column: batch.getChildAt(at) as Vector,
    }));
    for (let row = 0; row < batch.numRows; row++)
      yield Object.fromEntries(columns.map(({ name, read, column }) => [name, read(column, row)]));
  };
}

/** Returns how items of a type are read, as {@link createRowReader} does; null as null. */
export function itemReader(
  arrow: Arrow,
  type: DataType,
  ofType: (arrow: Arrow, type: DataType) => ReadItem,
): ReadItem {
  const readerOf = (each: DataType) => itemReader(arrow, each, ofType);

  function readerOfValue(type: DataType): ReadItem {
    const { DataType: Is } = arrow;
    if (Is.isList(type) || Is.isFixedSizeList(type)) {
      const read = readerOf(type.children[0]?.type as DataType);
      return (column, index) => {
        const items: Vector = column.get(index);
        return Array.from({ length: items.length }, (_, at) => read(items, at));
      };
    }
    if (Is.isStruct(type)) {
      const readers = type.children.map((child) => [child.name, readerOf(child.type)] as const);
      return (column, index) =>
        Object.fromEntries(
          readers.map(([name, read], at) => [name, read(column.getChildAt(at) as Vector, index)]),
        );
    }
    if (Is.isMap(type)) {
      const [key, item] = (type.children[0]?.type.children ?? []).map((each) => readerOf(each.type));
      return (column, index) => {
        const { valueOffsets, children } = column.data[0] as Data;
        const [keys, items] = [0, 1].map((at) => arrow.makeVector(children[0]?.children[at] as Data));
        const pairs: [unknown, unknown][] = [];
        for (let at = Number(valueOffsets[index]); at < Number(valueOffsets[index + 1]); at++)
          pairs.push([key?.(keys as Vector, at), item?.(items as Vector, at)]);
        return mapOf(pairs);
      };
    }
    if (Is.isDictionary(type)) {
      const read = readerOf(type.valueType as DataType);
      return (column, index) => {
        const { dictionary, values } = column.data[0] as Data;
        return readChunked(arrow, dictionary as Vector, Number(values[index]), read);
      };
    }
    return ofType(arrow, type);
  }

  const read = readerOfValue(type);
  return (column, index) => (column.isValid(index) ? read(column, index) : null);
}

/** Reads an item of a vector of one or several pieces; readers of items look at a single piece. */
export function readChunked(arrow: Arrow, vector: Vector, index: number, read: ReadItem): unknown {
  let rest = index;
  for (const data of vector.data) {
    if (rest < data.length) return read(arrow.makeVector(data) as Vector, rest);
    rest -= data.length;
  }
  return null;
}

/** Returns a map as an object where that has the same members, and as a list of pairs elsewhere. */
function mapOf(pairs: readonly (readonly [unknown, unknown])[]): unknown {
  const keys = new Set(pairs.map(([key]) => key));
  const isObject = keys.size === pairs.length && pairs.every(([key]) => typeof key === "string");
  return isObject ? Object.fromEntries(pairs) : pairs;
}
