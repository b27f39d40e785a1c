import { END_OF_STREAM, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { type ArrowSchema, decodeSchema } from "../../../../arrow/schema.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQuery } from "../../engine/native/query.ts";
import { exactColumns, exactWithAnyIndex } from "../../engine/sql/exact-filter.ts";
import { readSchema } from "../../engine/version-answers.ts";
import type { RowRange } from "./added-rows.ts";
import type { OutputSchema } from "./definition.ts";
import type { ViewQuery } from "./query-text.ts";

/** Maximum limit that the engine takes. Of a larger number it would take the lower bits. */
const MAX_LIMIT = 0x7fff_ffff;

/** The part of a source that a query reads. */
export interface Part {
  /** Selects only these rows; an empty list selects none. Default: all. */
  readonly rows?: readonly RowRange[] | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
}

/** Builds the engine query of a view. */
export async function buildSourceQuery(
  source: NativeTable,
  { columns, where }: ViewQuery,
  { schema }: OutputSchema,
  { rows, limit }: Part,
): Promise<NativeQuery> {
  const { fields } = await engineCall(() => readSchema(source));
  const query = source.query();
  if (columns.length === 0) query.selectColumns(schema.fields.map(({ name }) => name));
  else query.select(await exactColumns(columns, fields));
  const ranges = rows?.map(({ from, to }) => `_rowaddr >= ${from} AND _rowaddr < ${to}`);
  const added = ranges === undefined ? [] : [`(${ranges.join(" OR ") || "false"})`];
  const conditions = [
    ...added,
    ...(where === undefined ? [] : [`(${await exactWithAnyIndex(where, fields)})`]),
  ];
  if (conditions.length > 0) query.onlyIf(conditions.join(" AND "));
  if (limit !== undefined && limit <= MAX_LIMIT) query.limit(limit);
  return query;
}

/** Returns the schema of a query's result. */
export async function resultSchema(query: NativeQuery): Promise<ArrowSchema> {
  const file = await engineCall(() => query.outputSchema());
  return decodeSchema(splitIpcFile(file).schemaMetadata);
}

/** Returns the schema of the rows that a view's query selects, as an Arrow schema message with its prefix. */
export async function derivedSchema(source: NativeTable, { columns }: ViewQuery): Promise<Uint8Array> {
  const query = source.query();
  if (columns.length > 0) {
    const { fields } = await engineCall(() => readSchema(source));
    query.select(await exactColumns(columns, fields));
  }
  const file = await engineCall(() => query.outputSchema());
  return splitIpcFile(file).schema;
}

/**
 * Yields the result of a query as an IPC stream with the schema of the view. That schema differs from the result's only
 * in nullability and metadata, which do not change a buffer.
 *
 * @param batchRows number of rows that the engine reads at a time
 */
export async function* resultStream(
  query: NativeQuery,
  { message }: OutputSchema,
  batchRows: number,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const wait = <T>(work: () => Promise<T>) => engineCall(() => untilAborted(work(), signal));
  yield message;
  const batches = await wait(() => query.execute(batchRows));
  for (;;) {
    const batch = await wait(() => batches.next());
    if (batch === null) break;
    yield* splitIpcFile(batch).data;
  }
  yield END_OF_STREAM;
}
