import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { hasMeaning, isPlain, whyNotPortable } from "../../engine/sql/portable.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import { schemaOf } from "../columns/columns.ts";
import { withData } from "../tables/open-data.ts";
import type { OutputSchema } from "./definition.ts";
import type { ViewQuery } from "./query-text.ts";
import { buildSourceQuery, resultSchema } from "./source.ts";

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
