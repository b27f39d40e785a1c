import type { DataType, RecordBatch, Vector } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** Reads an item of a column, which is not null. */
export type ReadItem = (column: Vector, index: number) => unknown;

/**
 * Creates a reader of the rows of a batch as names with values: lists as arrays, structs as objects, and everything else as the
 * function says.
 *
 * @param ofType returns how items of a type that is neither a list nor a struct are read
 */
export function createRowReader(
  arrow: Arrow,
  ofType: (arrow: Arrow, type: DataType) => ReadItem,
): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  function readerOf(type: DataType): ReadItem {
    const read = readerOfValue(type);
    return (column, index) => (column.isValid(index) ? read(column, index) : null);
  }

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
    return ofType(arrow, type);
  }

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
