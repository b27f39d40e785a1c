import { splitIpcFile } from "../../../arrow/ipc/stream.ts";
import { type ArrowSchema, decodeSchema } from "../../../arrow/schema.ts";
import { once } from "../../../runtime/promises.ts";
import type { NativeTable } from "./native/native.ts";

/**
 * Answers of the engine about the version of an open table. A version never changes, so that all callers share the first
 * request for each answer; a request that fails is made again.
 */
export interface VersionAnswers {
  version(): Promise<number>;
  schema(): Promise<ArrowSchema>;
  /** Returns the number of rows that are not deleted. */
  rowCount(): Promise<number>;
  /** Returns the paths of the fields that have a full-text index, each with the number of rows that are not in it. */
  textFields(): Promise<ReadonlyMap<string, number>>;
  /** Returns the size of the data files per row, in bytes; 0 for a table without rows. */
  averageRow(): Promise<number>;
}

type Source = Pick<NativeTable, "version" | "schema" | "countRows" | "listIndices" | "stats">;

/** The type of a full-text index in the engine's list. */
const TEXT_INDEX = "FTS";

/**
 * Creates the answers about the version at which a table is now.
 *
 * @param version its number, if it is known. Default: the engine is asked
 */
export function createVersionAnswers(table: Source, version?: number): VersionAnswers {
  return {
    version: once(async () => version ?? table.version()),
    schema: once(() => readSchema(table)),
    rowCount: once(() => table.countRows()),
    textFields: once(() => readTextFields(table)),
    averageRow: once(() => readAverageRow(table)),
  };
}

/** Asks the engine for the schema of a table's version. */
export async function readSchema(table: Pick<NativeTable, "schema">): Promise<ArrowSchema> {
  return decodeSchema(splitIpcFile(await table.schema()).schemaMetadata);
}

/**
 * Asks the engine for the fields with a full-text index in a table's version, each with the number of rows outside of it; the engine opens a file of
 * each such index.
 */
async function readTextFields(table: Pick<NativeTable, "listIndices">): Promise<Map<string, number>> {
  const fields = new Map<string, number>();
  for (const { indexType, columns, numUnindexedRows = 0 } of await table.listIndices()) {
    if (indexType !== TEXT_INDEX) continue;
    for (const path of columns) fields.set(path, Math.max(numUnindexedRows, fields.get(path) ?? 0));
  }
  return fields;
}

/** Asks the engine for the size of the data files of a table's version per row, in bytes. */
export async function readAverageRow(table: Pick<NativeTable, "stats">): Promise<number> {
  const { totalBytes, numRows } = await table.stats();
  return numRows === 0 ? 0 : totalBytes / numRows;
}
