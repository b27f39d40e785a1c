import { create } from "@bufbuild/protobuf";
import { collectUpload } from "../../../arrow/upload/upload.ts";
import {
  AbortMultipartWriteResponseSchema,
  AddColumnsFromSchemaResponseSchema,
  CompleteMultipartWriteResponseSchema,
  CreateMultipartWriteResponseSchema,
} from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../namespace/lance-namespace.ts";
import type { DataContext } from "../data/data-context.ts";
import { createBlobOperations } from "./blobs/blobs.ts";
import { withBlobColumns } from "./blobs/legacy-blobs.ts";
import { checkName } from "./columns/column-name.ts";
import { requireNewName, schemaOf } from "./columns/columns.ts";
import type { ReadContext, UploadContext } from "./context.ts";
import { createPrewarmOperations } from "./read/prewarm.ts";
import { checkBlobs } from "./rows/check-blobs.ts";
import { checkStorable, checkTypes } from "./rows/check-types.ts";
import type { MultipartWrites } from "./rows/multipart.ts";
import { withGuarded } from "./tables/call-data.ts";
import { requireTable } from "./tables/find-table.ts";
import { createWriteLogOperations } from "./tables/write-log.ts";
import { createCherryPickOperations } from "./versions/cherry-pick.ts";

/** Names of LanceDB's own calls on the data of tables. */
export type RowExtension =
  | keyof ReturnType<typeof createWriteLogOperations>
  | keyof ReturnType<typeof createBlobOperations>
  | keyof ReturnType<typeof createPrewarmOperations>
  | keyof ReturnType<typeof createCherryPickOperations>
  | "addColumnsFromSchema"
  | "createMultipartWrite"
  | "completeMultipartWrite"
  | "abortMultipartWrite";

/** Calls of LanceDB's remote clients on the data of tables. */
export function createRowExtensions(
  context: DataContext & ReadContext & Pick<UploadContext, "maxUploadBytes">,
  writes: MultipartWrites,
): Pick<LanceDbExtensions, RowExtension> {
  const { maxUploadBytes } = context;
  return {
    ...createWriteLogOperations(context),
    ...createBlobOperations(context),
    ...createPrewarmOperations(context),
    ...createCherryPickOperations(context),
    async addColumnsFromSchema({ branch }, data, call) {
      const upload = await collectUpload(data, { maxBytes: maxUploadBytes, signal: call.signal });
      const { file, schema } = await withBlobColumns(upload, call.holdBody);
      if (schema.fields.length === 0) throw new LanceError("InvalidInput", "the schema has no columns");
      checkBlobs(schema.fields);
      checkTypes(schema.fields);
      checkStorable(schema.fields);
      const added = await withGuarded(context, call, { branch }, async ({ table, wait, commit }) => {
        const current = await wait(() => schemaOf(table));
        for (const { name } of schema.fields) requireNewName(current, checkName(name));
        return commit(() => table.addColumnsWithSchema(file));
      });
      return create(AddColumnsFromSchemaResponseSchema, { version: BigInt(added.version) });
    },
    async createMultipartWrite({ branch }, call) {
      const table = await requireTable(context, call);
      return create(CreateMultipartWriteResponseSchema, { uploadId: await writes.begin(table, branch) });
    },
    async completeMultipartWrite({ branch, uploadId }, call) {
      const table = await requireTable(context, call);
      const { rows, version } = await writes.complete({ id: uploadId, table, branch }, call);
      return create(CompleteMultipartWriteResponseSchema, { version, numInsertedRows: rows });
    },
    async abortMultipartWrite({ branch, uploadId }, call) {
      const table = await requireTable(context, call);
      await writes.abort({ id: uploadId, table, branch });
      return create(AbortMultipartWriteResponseSchema);
    },
  };
}
