import type { RecordBatch, Schema } from "apache-arrow";
import { fittingVector } from "./fitting.ts";

type Arrow = typeof import("apache-arrow");

/**
 * Returns a batch of columns.
 *
 * @param columns values of each column of the schema; times are in nanoseconds, so that none loses digits
 * @param placeOf names a row in errors, by its index
 * @throws LanceError InvalidInput, if the type of a column has no such value.
 */
export function batchOf(
  arrow: Arrow,
  schema: Schema,
  columns: readonly (readonly unknown[])[],
  placeOf?: (row: number) => string,
): RecordBatch {
  const children = schema.fields.map(
    ({ name, type }, at) => fittingVector(arrow, name, columns[at] ?? [], type, placeOf).data[0] as never,
  );
  const length = columns[0]?.length ?? 0;
  const struct = arrow.makeData({ type: new arrow.Struct(schema.fields), length, nullCount: 0, children });
  return new arrow.RecordBatch(schema, struct);
}
