import type { DataType, RecordBatch, Schema, TimeUnit, Vector } from "apache-arrow";
import { fittingVector } from "./fitting.ts";

type Arrow = typeof import("apache-arrow");

/**
 * Returns a batch of columns.
 *
 * @param columns values of each column of the schema; times are in nanoseconds, so that none loses digits
 * @param firstRow number of the first row in errors
 * @throws LanceError InvalidInput, if the type of a column has no such value.
 */
export function batchOf(
  arrow: Arrow,
  schema: Schema,
  columns: readonly (readonly unknown[])[],
  firstRow = 0,
): RecordBatch {
  const children = schema.fields.map(
    ({ name, type }, at) => columnOf(arrow, name, columns[at] ?? [], type, firstRow).data[0] as never,
  );
  const length = columns[0]?.length ?? 0;
  const struct = arrow.makeData({ type: new arrow.Struct(schema.fields), length, nullCount: 0, children });
  return new arrow.RecordBatch(schema, struct);
}

function columnOf(
  arrow: Arrow,
  name: string,
  values: readonly unknown[],
  type: DataType,
  firstRow: number,
): Vector {
  if (!arrow.DataType.isTimestamp(type)) return fittingVector(arrow, name, values, type, firstRow);
  const divisor = nanosOf(arrow, type.unit);
  const units = values.map((value) => (value === null ? null : (value as bigint) / divisor));
  const [data] = arrow.vectorFromArray(units, new arrow.Int64()).data;
  return arrow.makeVector(data?.clone(type as never) as never);
}

/** Returns the nanoseconds in a unit of time. */
function nanosOf({ TimeUnit }: Arrow, unit: TimeUnit): bigint {
  const nanos = {
    [TimeUnit.SECOND]: 1_000_000_000n,
    [TimeUnit.MILLISECOND]: 1_000_000n,
    [TimeUnit.MICROSECOND]: 1_000n,
    [TimeUnit.NANOSECOND]: 1n,
  } as const;
  return nanos[unit];
}
