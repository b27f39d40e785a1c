import duckdb from "@duckdb/node-bindings";
import { type Data, DataType, Precision, type RecordBatch, RecordBatchReader, TimeUnit } from "apache-arrow";

/** Binds the values of the only row of an IPC stream to the parameters of a statement, in order. @throws Error for rows that do not fit it */
export function bindParameters(statement: duckdb.PreparedStatement, stream: Uint8Array): void {
  const count = duckdb.nparams(statement);
  if (stream.byteLength === 0) {
    if (count > 0) throw new Error(`the statement has ${count} parameters, and none is given`);
    return;
  }
  const batches = [...RecordBatchReader.from(stream)].filter(({ numRows }) => numRows > 0);
  const [row, ...others] = batches;
  if (row === undefined || others.length > 0 || row.numRows !== 1)
    throw new Error("the parameters have to be a single row");
  if (row.numCols !== count)
    throw new Error(`the statement has ${count} parameters, and ${row.numCols} are given`);
  for (let i = 0; i < count; i++) duckdb.bind_value(statement, i + 1, parameterValue(row, i));
}

function parameterValue(row: RecordBatch, column: number): duckdb.Value {
  const vector = row.getChildAt(column);
  const value: unknown = vector?.get(0);
  if (vector === null || value === null || value === undefined) return duckdb.create_null_value();
  const { type } = vector;
  const data = vector.data[0] as Data;
  if (DataType.isBool(type)) return duckdb.create_bool(value as boolean);
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isDictionary(type))
    return duckdb.create_varchar(textOf(value));
  if (DataType.isBinary(type) || DataType.isLargeBinary(type) || DataType.isFixedSizeBinary(type))
    return duckdb.create_blob(value as Uint8Array);
  if (DataType.isFloat(type))
    return type.precision === Precision.DOUBLE
      ? duckdb.create_double(value as number)
      : duckdb.create_float(value as number);
  if (DataType.isInt(type)) {
    const whole = BigInt(value as number | bigint);
    return type.isSigned || type.bitWidth < 64 ? duckdb.create_int64(whole) : duckdb.create_uint64(whole);
  }
  if (DataType.isDecimal(type) && type.bitWidth === 128)
    return duckdb.create_decimal({ width: type.precision, scale: type.scale, value: wideOf(data) });
  if (DataType.isDate(type)) {
    const days = type.unit === 0 ? Number(data.values[0]) : Number(first64(data) / 86_400_000n);
    return duckdb.create_date({ days } as duckdb.Date_);
  }
  if (DataType.isTimestamp(type)) {
    const micros = microsecondsOf(first64(data), type.unit);
    return type.timezone
      ? duckdb.create_timestamp_tz({ micros } as duckdb.Timestamp)
      : duckdb.create_timestamp({ micros } as duckdb.Timestamp);
  }
  if (DataType.isTime(type)) {
    const raw = type.bitWidth === 32 ? BigInt(data.values[0]) : first64(data);
    return duckdb.create_time({ micros: microsecondsOf(raw, type.unit) } as unknown as duckdb.Time);
  }
  throw new Error(`parameter ${column + 1} has the type ${type}, which parameters do not have`);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error("a parameter of a dictionary has to be a text");
}

function first64({ values }: Data): bigint {
  const { buffer, byteOffset } = values as ArrayBufferView;
  return new DataView(buffer as ArrayBuffer, byteOffset).getBigInt64(0, true);
}

function wideOf({ values }: Data): bigint {
  const { buffer, byteOffset } = values as ArrayBufferView;
  const view = new DataView(buffer as ArrayBuffer, byteOffset);
  return (view.getBigInt64(8, true) << 64n) | view.getBigUint64(0, true);
}

function microsecondsOf(value: bigint, unit: TimeUnit): bigint {
  switch (unit) {
    case TimeUnit.SECOND:
      return value * 1_000_000n;
    case TimeUnit.MILLISECOND:
      return value * 1000n;
    case TimeUnit.MICROSECOND:
      return value;
    default:
      if (value % 1000n !== 0n) throw new Error("a parameter has nanoseconds; parameters have microseconds");
      return value / 1000n;
  }
}
