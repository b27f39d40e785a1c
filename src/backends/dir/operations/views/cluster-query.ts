import type { ArrowField } from "../../../../arrow/schema.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { hasMeaning, isPlain, whyNotPortable } from "../../engine/sql/portable.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import type { OutputSchema } from "./definition.ts";
import type { ViewQuery } from "./query-text.ts";

/** Returns why a cluster does not compute the rows of a view; undefined if it does. */
export async function whyNoClusterRefresh(
  view: Manifest,
  { columns, where, limit }: ViewQuery,
  { schema }: OutputSchema,
  fields: readonly ArrowField[],
): Promise<string | undefined> {
  if (limit !== undefined) return "LIMIT";
  if (!takesStagedRows(view)) return "a feature of the view";
  const names = columns.length === 0 ? schema.fields.map(({ name }) => name) : [];
  const results = new Map(schema.fields.map((field) => [field.name, field]));
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
