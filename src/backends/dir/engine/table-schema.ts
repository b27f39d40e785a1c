import { type ArrowSchema, decodeSchema } from "../../../arrow/schema.ts";
import { splitIpcFile } from "../../../arrow/stream.ts";
import type { NativeTable } from "./native.ts";

/** Asks the engine for the schema of a handle's version. */
export async function readSchema(table: Pick<NativeTable, "schema">): Promise<ArrowSchema> {
  return decodeSchema(splitIpcFile(await table.schema()).schemaMetadata);
}
