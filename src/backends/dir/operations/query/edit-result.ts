import { addToFirst, dropColumn, dropField, replaceFloats, skipRows } from "../../../../arrow/edit.ts";
import { parseMessageHead, readPrefix } from "../../../../arrow/message.ts";
import { type ArrowField, decodeSchema } from "../../../../arrow/schema.ts";
import type { FileMessages } from "../../../../arrow/stream.ts";
import { type BuiltQuery, RELEVANCE, ROW_ID } from "./build.ts";

/** The constant of reciprocal rank fusion: the row of rank r scores 1 / (60 + r). */
const FUSION_CONSTANT = 60;

/** Changes the batches of a result, one after the other. */
export type ResultEditor = (batch: FileMessages) => { schema: Uint8Array; data: readonly Uint8Array[] };

/**
 * Finishes a result of the engine: drops the column of row ids and the rows at the start, adds the relevance of ranks,
 * and leaves out batches without rows, whose schema is wrong for some searches.
 *
 * @param ranked whether the result already has the relevance of its ranks
 * @param firstVector the index of the first query vector, because the engine counts from 0
 */
export function createResultEditor(
  { hidesRowId, skipRows: skip }: BuiltQuery,
  ranked: boolean,
  firstVector: number,
): ResultEditor {
  let [left, rank] = [skip, 0];

  function edit(message: Uint8Array, fields: readonly ArrowField[], rowId: number): Uint8Array[] {
    const { kind, rows } = headOf(message);
    if (kind !== "batch") return [message];
    // With several vectors, the first column is the index of the vector.
    let edited = firstVector > 0 && rows > 0 ? addToFirst(message, firstVector) : message;
    if (!ranked) {
      const [column, start] = [fields.findIndex(({ name }) => name === RELEVANCE), rank];
      edited = replaceFloats(edited, fields, column, (row) => 1 / (FUSION_CONSTANT + start + row));
      rank += rows;
    }
    const skipped = Math.min(left, rows);
    left -= skipped;
    if (skipped === rows) return [];
    if (skipped > 0) edited = skipRows(edited, fields, skipped);
    return [rowId >= 0 ? dropColumn(edited, fields, rowId) : edited];
  }
  return ({ schema, schemaMetadata, data }) => {
    const { fields } = hidesRowId || left > 0 || !ranked ? decodeSchema(schemaMetadata) : { fields: [] };
    const rowId = hidesRowId ? fields.findIndex(({ name }) => name === ROW_ID) : -1;
    return {
      schema: rowId >= 0 ? dropField(schema, rowId) : schema,
      data: data.flatMap((message) => edit(message, fields, rowId)),
    };
  };
}

function headOf(message: Uint8Array) {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const prefix = readPrefix(bytes, 0);
  const at = prefix?.bytes ?? 0;
  return parseMessageHead(bytes.subarray(at, at + (prefix?.metadataLength ?? 0)), 0);
}
