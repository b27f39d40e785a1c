// Readers of columns whose values have parts, and of columns without values.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { type ColumnReader, field, isValid, openVector, type Source, Validity } from "./column-reader.ts";

export function lists(make: (child: arrow.DataType) => arrow.DataType, child: ColumnReader): ColumnReader {
  const validity = new Validity();
  let offsets: number[] = [0];
  const type = make(child.type);
  return {
    type,
    open(vector, count) {
      const items = duckdb.list_vector_get_size(vector);
      return openVector(vector, count, 16, [child.open(duckdb.list_vector_get_child(vector), items)]);
    },
    append(source, from, count) {
      validity.append(source, from, count);
      for (let i = from; i < from + count; i++) {
        let items = 0;
        if (isValid(source, i)) {
          items = Number(source.data.getBigUint64(16 * i + 8, true));
          child.append(source.children[0] as Source, Number(source.data.getBigUint64(16 * i, true)), items);
        }
        offsets.push((offsets.at(-1) as number) + items);
      }
    },
    finish() {
      const valueOffsets = Int32Array.from(offsets);
      offsets = [0];
      return arrow.makeData({ type, ...validity.finish(), valueOffsets, child: child.finish() } as never);
    },
  };
}

export function arrays(child: ColumnReader, size: number): ColumnReader {
  const validity = new Validity();
  const type = new arrow.FixedSizeList(size, field("item", child.type));
  return {
    type,
    open: (vector, count) =>
      openVector(vector, count, 0, [child.open(duckdb.array_vector_get_child(vector), count * size)]),
    append(source, from, count) {
      validity.append(source, from, count);
      child.append(source.children[0] as Source, from * size, count * size);
    },
    finish: () => arrow.makeData({ type, ...validity.finish(), child: child.finish() } as never),
  };
}

export function structs(names: readonly string[], members: readonly ColumnReader[]): ColumnReader {
  const validity = new Validity();
  const type = new arrow.Struct(members.map((member, i) => field(names[i] as string, member.type)));
  return {
    type,
    open: (vector, count) =>
      openVector(
        vector,
        count,
        0,
        members.map((member, i) => member.open(duckdb.struct_vector_get_child(vector, i), count)),
      ),
    append(source, from, count) {
      validity.append(source, from, count);
      for (const [i, member] of members.entries()) member.append(source.children[i] as Source, from, count);
    },
    finish: () =>
      arrow.makeData({
        ...{ type, ...validity.finish() },
        children: members.map((member) => member.finish()),
      } as never),
  };
}

/** Reads unions, which DuckDB holds as structs whose first member is the tag. */
export function unions(names: readonly string[], members: readonly ColumnReader[]): ColumnReader {
  let typeIds: number[] = [];
  const fields = members.map((member, i) => field(names[i] as string, member.type));
  const type = new arrow.SparseUnion(fields.map((_, i) => i) as never, fields);
  return {
    type,
    open(vector, count) {
      const tag = openVector(duckdb.struct_vector_get_child(vector, 0), count, 1, []);
      const values = members.map((member, i) =>
        member.open(duckdb.struct_vector_get_child(vector, i + 1), count),
      );
      return openVector(vector, count, 0, [tag, ...values]);
    },
    append(source, from, count) {
      const [tag, ...values] = source.children as readonly [Source, ...Source[]];
      // A null is the null of the first member.
      for (let i = from; i < from + count; i++) typeIds.push(isValid(tag, i) ? tag.data.getUint8(i) : 0);
      for (const [i, member] of members.entries()) member.append(values[i] as Source, from, count);
    },
    finish() {
      const ids = Int8Array.from(typeIds);
      typeIds = [];
      return arrow.makeData({
        ...{ type, length: ids.length, nullCount: 0, typeIds: ids },
        children: members.map((member) => member.finish()),
      } as never);
    },
  };
}

/** Reads maps, which DuckDB holds as lists of structs of a key and a value. */
export function maps(key: ColumnReader, value: ColumnReader): ColumnReader {
  const entries = structs(["key", "value"], [key, value]);
  // Arrow has neither null entries nor null keys.
  const entryType = new arrow.Struct([new arrow.Field("key", key.type, false), field("value", value.type)]);
  return lists(() => new arrow.Map_(new arrow.Field("entries", entryType, false) as never), entries);
}

export function nulls(): ColumnReader {
  let length = 0;
  const type = new arrow.Null();
  return {
    type,
    open: (vector) => ({ vector, data: new DataView(new ArrayBuffer(0)), validity: null, children: [] }),
    append(_source, _from, count) {
      length += count;
    },
    finish() {
      const data = arrow.makeData({ type, length, nullCount: length } as never);
      length = 0;
      return data;
    },
  };
}
