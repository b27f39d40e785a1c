import { END_OF_STREAM, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { type ArrowField, type ArrowSchema, decodeSchema } from "../../../../arrow/schema.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQuery } from "../../engine/native/query.ts";
import { exactColumns, exactWithAnyIndex } from "../../engine/sql/exact-filter.ts";
import { hasMeaning, isPlain, whyNotPortable } from "../../engine/sql/portable.ts";
import { readSchema } from "../../engine/version-answers.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import { schemaOf } from "../columns/columns.ts";
import { withData } from "../tables/open-data.ts";
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

/** A full refresh of a view. */
export interface WholeRefresh {
  readonly view: FoundTable;
  /** The version of the view that gets other rows. */
  readonly before: Manifest;
  readonly source: FoundTable;
  /** The version of the source that is read. */
  readonly origin: Manifest;
  readonly query: ViewQuery;
  readonly output: OutputSchema;
}

/** The columns of the source of a view, and those of the result of its query. */
export interface QueryColumns {
  readonly fields: readonly ArrowField[];
  readonly result: ArrowSchema;
}

/** Returns the columns with which a cluster computes the rows of a view, or why it does not. */
export async function columnsForCluster(
  context: DataContext,
  { view, before, source, origin, query, output }: WholeRefresh,
): Promise<QueryColumns | { readonly reason: string }> {
  if (query.limit !== undefined) return { reason: "LIMIT" };
  if (!takesStagedRows(before)) return { reason: "a feature of the view" };
  const own = await withData(context, view, { version: before.version }, schemaOf);
  const read = await withData(context, source, { version: origin.version }, async (native) => ({
    fields: (await schemaOf(native)).fields,
    result: await resultSchema(await buildSourceQuery(native, query, output, {})),
  }));
  const reason = await whyOtherRows(query, own, read);
  return reason === undefined ? read : { reason };
}

async function whyOtherRows(
  { columns, where }: ViewQuery,
  own: ArrowSchema,
  { fields, result: selected }: QueryColumns,
): Promise<string | undefined> {
  // Drivers write the columns that the view has by their places, and the gateway gives the view those of its query.
  if (JSON.stringify(own.fields.map(shapeOf)) !== JSON.stringify(selected.fields.map(shapeOf)))
    return "its columns differ from those of its query";
  const names = columns.length === 0 ? selected.fields.map(({ name }) => name) : [];
  const results = new Map(own.fields.map((field) => [field.name, field]));
  for (const [name, expression] of [...names.map((each) => [each, each] as const), ...columns]) {
    const copied = fields.find((field) => field.name === expression);
    const result = results.get(name);
    if (copied !== undefined && isCopied(copied)) continue;
    const reason = copied === undefined ? await whyNotPortable(expression, fields) : "the type of a column";
    if (reason !== undefined) return reason;
    if (result === undefined || !isPlain(result)) return `the type of the column ${name}`;
  }
  return where === undefined ? undefined : await whyNotPortable(where, fields);
}

/** Whether a column is the same in files of other versions of the engine. */
function isCopied({ dictionary, metadata, children }: ArrowField): boolean {
  return dictionary === undefined && !hasMeaning(metadata) && children.every(isCopied);
}

/** Returns what the columns of rows and of the table that gets them have to have alike. */
function shapeOf({ name, type, dictionary, children }: ArrowField): unknown[] {
  const parts = children.map((child) => [child.nullable, ...shapeOf(child)]);
  return [name, type, dictionary !== undefined, parts];
}
