import {
  addToFirst,
  dropColumn,
  dropField,
  integersOf,
  replaceFloats,
  rowsAmong,
  selectRows,
} from "../../../../arrow/edit.ts";
import { rowsIn } from "../../../../arrow/ipc/arrays.ts";
import { parseMessageHead, readPrefix } from "../../../../arrow/ipc/message.ts";
import type { FileMessages } from "../../../../arrow/ipc/stream.ts";
import { type ArrowField, decodeSchema } from "../../../../arrow/schema.ts";
import type { BuiltQuery } from "./build.ts";
import { FOUND_ROW, RELEVANCE, ROW_ID } from "./clauses.ts";

/** The constant of reciprocal rank fusion: the row of rank r scores 1 / (60 + r). */
const FUSION_CONSTANT = 60;

/**
 * Changes the batches of a result, one after the other.
 *
 * @param passing the ids of the rows that pass the filter after the search; undefined if there is none
 */
export type ResultEditor = (
  batch: FileMessages,
  passing?: ReadonlySet<bigint>,
) => { schema: Uint8Array; data: readonly Uint8Array[] };

/**
 * Finishes a result of the engine: drops the rows that a filter after the search rejects, the columns that the request
 * did not ask for and the rows at the start, adds the relevance of ranks, and leaves out batches without rows, whose
 * schema is wrong for some searches.
 *
 * @param ranked whether the result already has the relevance of its ranks
 * @param firstVector the index of the first query vector, because the engine counts from 0
 */
export function createResultEditor(
  { hidesRowId, filterAfter, skipRows: skip }: BuiltQuery,
  ranked: boolean,
  firstVector: number,
): ResultEditor {
  let [left, rank] = [skip, 0];

  function edit(
    message: Uint8Array,
    fields: readonly ArrowField[],
    hidden: readonly number[],
    passing: ReadonlySet<bigint> | undefined,
  ): Uint8Array[] {
    const { kind, rows: all } = headOf(message);
    if (kind !== "batch") return [message];
    // With several vectors, the first column is the index of the vector.
    let [edited, rows] = [firstVector > 0 && all > 0 ? addToFirst(message, firstVector) : message, all];
    if (!ranked) {
      const [column, start] = [fields.findIndex(({ name }) => name === RELEVANCE), rank];
      edited = replaceFloats(edited, fields, column, (row) => 1 / (FUSION_CONSTANT + start + row));
      rank += rows;
    }
    if (passing !== undefined) {
      const kept = rowsAmong(edited, fields, indexOfRows(fields), passing);
      rows = rowsIn(kept);
      if (rows === 0) return [];
      if (rows < all) edited = selectRows(edited, fields, kept);
    }
    const skipped = Math.min(left, rows);
    left -= skipped;
    if (skipped === rows) return [];
    if (skipped > 0) edited = selectRows(edited, fields, [{ from: skipped, count: rows - skipped }]);
    return [hidden.reduce((batch, index) => dropColumn(batch, fields, index), edited)];
  }
  const filters = filterAfter !== undefined;
  return ({ schema, schemaMetadata, data }, passing) => {
    const { fields } =
      hidesRowId || filters || left > 0 || !ranked ? decodeSchema(schemaMetadata) : { fields: [] };
    const names = [...(hidesRowId ? [ROW_ID] : []), ...(filters ? [FOUND_ROW] : [])];
    const hidden = fields.flatMap(({ name }, index) => (names.includes(name) ? [index] : [])).reverse();
    return {
      schema: hidden.reduce(dropField, schema),
      data: data.flatMap((message) => edit(message, fields, hidden, passing)),
    };
  };
}

/** Returns the ids of the rows of a batch, which has the column {@link FOUND_ROW}. */
export function foundRows({ schemaMetadata, data }: FileMessages): bigint[] {
  const { fields } = decodeSchema(schemaMetadata);
  const batches = data.filter((message) => headOf(message).kind === "batch");
  return batches.flatMap((message) => integersOf(message, fields, indexOfRows(fields)));
}

function indexOfRows(fields: readonly ArrowField[]): number {
  return fields.findIndex(({ name }) => name === FOUND_ROW);
}

function headOf(message: Uint8Array) {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const prefix = readPrefix(bytes, 0);
  const at = prefix?.bytes ?? 0;
  return parseMessageHead(bytes.subarray(at, at + (prefix?.metadataLength ?? 0)), 0);
}
