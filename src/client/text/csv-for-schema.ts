import type { RecordBatch, Schema } from "apache-arrow";
import { toIpcStream } from "../arrow-input.ts";
import { batchOf } from "../batches.ts";
import { type CsvText, FIRST_ROW, namesOf, type Rows, rowsOf } from "./csv.ts";
import { fieldsNamed, readColumn, valueOfText } from "./fit.ts";

/**
 * Converts CSV, whose first line names its columns, to an Arrow IPC stream for a table, which decides about the types. Without
 * rows the stream has the schema alone.
 *
 * @param separator as for {@link rowsOf}
 * @throws Error for text that is not CSV, and LanceError InvalidInput for values that the schema does not have.
 */
export async function* csvForSchema(
  text: CsvText,
  schema: Schema,
  separator?: string,
): AsyncIterable<Uint8Array> {
  const arrow = await import("apache-arrow");
  const chunks = rowsOf(text, separator);
  const first = await chunks.next();
  if (first.done) throw new Error("the file is empty");
  const fields = fieldsNamed(schema, namesOf(first.value.names));
  const fitting = new arrow.Schema(fields);
  const readers = fields.map(({ type }) => valueOfText(arrow, type));
  let next = FIRST_ROW;

  function batch(rows: Rows): RecordBatch {
    const columns = fields.map(({ name }, at) =>
      readColumn(
        name,
        readers[at] as ReturnType<typeof valueOfText>,
        rows.map((row) => row[at]),
        next,
      ),
    );
    const made = batchOf(arrow, fitting, columns, next);
    next += rows.length;
    return made;
  }
  async function* batches(): AsyncIterable<RecordBatch> {
    // An empty batch carries the schema.
    yield batch(first.value?.rows ?? []);
    for await (const { rows } of chunks) if (rows.length > 0) yield batch(rows);
  }
  yield* toIpcStream(batches());
}
