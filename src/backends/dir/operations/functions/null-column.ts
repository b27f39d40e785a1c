import { FUNCTION_KEY, type FunctionColumn } from "./computed-column.ts";
import type { FunctionType } from "./function-type.ts";

/** Returns an Arrow IPC file with the schema of a column that a function computes, and no rows. */
export async function emptyColumn({ name, type, binding }: FunctionColumn): Promise<Buffer> {
  const arrow = await import("apache-arrow");
  const plain: Readonly<Record<string, () => InstanceType<typeof arrow.DataType>>> = {
    bool: () => new arrow.Bool(),
    int8: () => new arrow.Int8(),
    int16: () => new arrow.Int16(),
    int32: () => new arrow.Int32(),
    int64: () => new arrow.Int64(),
    uint8: () => new arrow.Uint8(),
    uint16: () => new arrow.Uint16(),
    uint32: () => new arrow.Uint32(),
    uint64: () => new arrow.Uint64(),
    float16: () => new arrow.Float16(),
    float32: () => new arrow.Float32(),
    float64: () => new arrow.Float64(),
    utf8: () => new arrow.Utf8(),
    large_utf8: () => new arrow.LargeUtf8(),
    binary: () => new arrow.Binary(),
    large_binary: () => new arrow.LargeBinary(),
    date32: () => new arrow.DateDay(),
    date64: () => new arrow.DateMillisecond(),
  };
  const typeOf = ({ item, list, size = 0 }: FunctionType) => {
    const value = plain[item]?.() ?? new arrow.Null();
    if (list === undefined) return value;
    return new arrow.FixedSizeList(size, new arrow.Field("item", value, true));
  };
  const metadata = new Map([[FUNCTION_KEY, JSON.stringify(binding)]]);
  const schema = new arrow.Schema([new arrow.Field(name, typeOf(type), true, metadata)]);
  return Buffer.from(arrow.tableToIPC(new arrow.Table(schema), "file"));
}
