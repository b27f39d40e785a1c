import type { Data, DataType, RecordBatch, Vector } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** Returns the item at an index of an array. */
export type ItemAt = (index: number) => unknown;

/** Creates the reader of an array's items, none of which is null. */
export type ReadItems = (data: Data) => ItemAt;

/** Decides how items are read. */
export interface ItemForms {
  /** Returns how items of a type are read that is neither a list nor a struct, a map or a dictionary. */
  ofType(arrow: Arrow, type: DataType): ReadItems;
  /** Returns a list of items, the first of which is at an index. */
  ofList(item: ItemAt, start: number, length: number): unknown;
}

/**
 * Creates a reader of the rows of a batch as names with values: lists as the forms say, structs as objects, maps with texts as keys as
 * objects, other maps as arrays of pairs, and everything else as the forms say.
 */
export function createRowReader(
  arrow: Arrow,
  forms: ItemForms,
): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  return function* (batch) {
    const columns = batch.schema.fields.map(({ name, type }, at) => {
      const data = batch.data.children[at] as Data;
      return { name, itemAt: itemReader(arrow, type, forms)(data) };
    });
    for (let row = 0; row < batch.numRows; row++)
      yield Object.fromEntries(columns.map(({ name, itemAt }) => [name, itemAt(row)]));
  };
}

/** Returns how items of a type are read, as {@link createRowReader} does; null as null. */
export function itemReader(arrow: Arrow, type: DataType, forms: ItemForms): ReadItems {
  const read = presentReader(arrow, type, forms);
  return (data) => {
    const itemAt = read(data);
    // Counted once: the library goes over the bits again for each slice.
    if (arrow.DataType.isNull(type)) return () => null;
    return data.nullCount === 0 ? itemAt : (index) => (data.getValid(index) ? itemAt(index) : null);
  };
}

function presentReader(arrow: Arrow, type: DataType, forms: ItemForms): ReadItems {
  const { DataType: Is } = arrow;
  const readerOf = (each: DataType) => itemReader(arrow, each, forms);

  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const read = readerOf(type.children[0]?.type as DataType);
    const size = Is.isFixedSizeList(type) ? type.listSize : undefined;
    return ({ children, valueOffsets }) => {
      const item = read(children[0] as Data);
      if (size !== undefined) return (index) => forms.ofList(item, index * size, size);
      return (index) => {
        const [start, end] = rangeOf(valueOffsets, index);
        return forms.ofList(item, start, end - start);
      };
    };
  }
  if (Is.isStruct(type)) {
    const members = type.children.map((child) => [child.name, readerOf(child.type)] as const);
    return ({ children }) => {
      const items = members.map(([name, read], at) => [name, read(children[at] as Data)] as const);
      return (index) => Object.fromEntries(items.map(([name, itemAt]) => [name, itemAt(index)]));
    };
  }
  if (Is.isMap(type)) {
    const [key, item] = (type.children[0]?.type.children ?? []).map((each) => readerOf(each.type));
    const hasTexts = isText(arrow, type.keyType);
    return ({ children, valueOffsets }) => {
      const [keys, items] = children[0]?.children ?? [];
      const [keyAt, itemAt] = [key?.(keys as Data), item?.(items as Data)];
      return (index) => {
        const [start, end] = rangeOf(valueOffsets, index);
        const pairs: [unknown, unknown][] = [];
        for (let at = start; at < end; at++) pairs.push([keyAt?.(at), itemAt?.(at)]);
        return hasTexts && new Set(pairs.map(([each]) => each)).size === pairs.length
          ? Object.fromEntries(pairs)
          : pairs;
      };
    };
  }
  if (Is.isDictionary(type)) {
    const read = readerOf(type.valueType as DataType);
    return ({ dictionary, values }) => {
      const itemAt = chunkedReader(dictionary as Vector, read);
      return (index) => itemAt(Number(values[index]));
    };
  }
  return forms.ofType(arrow, type);
}

/** Reads the items of a vector of one or several pieces. */
export function chunkedReader(vector: Vector, read: ReadItems): ItemAt {
  const pieces = vector.data.map((data) => ({ length: data.length, itemAt: read(data) }));
  return (index) => {
    let rest = index;
    for (const { length, itemAt } of pieces) {
      if (rest < length) return itemAt(rest);
      rest -= length;
    }
    throw new RangeError(`there is no item ${index} among ${vector.length}`);
  };
}

function isText({ DataType: Is }: Arrow, type: DataType): boolean {
  return Is.isUtf8(type) || Is.isLargeUtf8(type) || (Is.isDictionary(type) && Is.isUtf8(type.valueType));
}

function rangeOf(offsets: Int32Array | BigInt64Array, index: number): readonly [start: number, end: number] {
  return [Number(offsets[index]), Number(offsets[index + 1])];
}
