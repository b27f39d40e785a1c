import { type ArrowSchema, decodeSchema } from "../../../arrow/schema.ts";
import { splitIpcFile } from "../../../arrow/stream.ts";
import type { NativeTable } from "./native.ts";

/**
 * Answers of the engine about the version of an open table. A version never changes, so that all callers share the first
 * request for each answer; a request that fails is made again.
 */
export interface VersionAnswers {
  schema(): Promise<ArrowSchema>;
  /** Returns the number of rows that are not deleted. */
  rowCount(): Promise<number>;
}

type Source = Pick<NativeTable, "schema" | "countRows">;

/** Creates the answers about the version at which a table is now. */
export function createVersionAnswers(table: Source): VersionAnswers {
  return { schema: askOnce(() => readSchema(table)), rowCount: askOnce(() => table.countRows()) };
}

/** Asks the engine for the schema of a table's version. */
export async function readSchema(table: Pick<NativeTable, "schema">): Promise<ArrowSchema> {
  return decodeSchema(splitIpcFile(await table.schema()).schemaMetadata);
}

function askOnce<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= ask().catch((error: unknown) => {
      answer = undefined;
      throw error;
    });
    return answer;
  };
}
