import { create } from "@bufbuild/protobuf";
import { InsertIntoTableResponseSchema, InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { UploadContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";
import { isMain, requireOpenTable } from "../tables/open-data.ts";
import { insertRows } from "./insert.ts";
import type { MultipartWrites } from "./multipart.ts";

/** The operation that adds rows to a table, or replaces them. */
export function createInsertOperations(
  context: DataContext & UploadContext,
  writes: Pick<MultipartWrites, "stage">,
): Pick<LanceNamespace, "insertIntoTable"> {
  return {
    async insertIntoTable({ branch, mode, uploadId, uploadPartId }, data, call) {
      const overwrite = mode === InsertMode.OVERWRITE;
      if (uploadId === undefined && isMain(branch) && !overwrite) {
        const { table, lease: opened } = await requireOpenTable(context, call);
        try {
          const target = { table, branch, overwrite, opened };
          const { rows, version } = await insertRows(context, target, data, call);
          return create(InsertIntoTableResponseSchema, { numInsertedRows: rows, version });
        } finally {
          opened?.release();
        }
      }
      const table = await requireTable(context, call);
      if (uploadId !== undefined) {
        const write = { id: uploadId, table, branch };
        await writes.stage({ write, name: uploadPartId ?? "", overwrite }, data, call);
        return create(InsertIntoTableResponseSchema);
      }
      const { rows, version } = await insertRows(context, { table, branch, overwrite }, data, call);
      return create(InsertIntoTableResponseSchema, { numInsertedRows: rows, version });
    },
  };
}
