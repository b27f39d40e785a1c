import { create } from "@bufbuild/protobuf";
import { collectUpload } from "../../../arrow/upload.ts";
import {
  AbortMultipartWriteResponseSchema,
  AddColumnsFromSchemaResponseSchema,
  CompleteMultipartWriteResponseSchema,
  CreateMultipartWriteResponseSchema,
} from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../namespace/lance-namespace.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { createBlobOperations } from "./blobs/blobs.ts";
import { checkName } from "./columns/column-name.ts";
import { requireNewName, schemaOf } from "./columns/columns.ts";
import type { JobContext, PageContext, ReadContext, UploadContext } from "./context.ts";
import { createJobExtensions } from "./jobs.ts";
import { createPrewarmOperations } from "./read/prewarm.ts";
import { checkBlobs } from "./rows/check-blobs.ts";
import { checkTypes } from "./rows/check-types.ts";
import type { MultipartWrites } from "./rows/multipart.ts";
import { createCloneOperations } from "./tables/clone.ts";
import { withGuarded } from "./tables/guarded.ts";
import { requireTable } from "./tables/lookup.ts";
import { createWriteLogOperations } from "./tables/write-log.ts";

/**
 * Calls of LanceDB's remote clients beyond the contract. For the rest of them the engine has no call on a local disk.
 */
export function createLanceDbExtensions(
  context: ChangeContext & ReadContext & Pick<UploadContext, "maxUploadBytes"> & JobContext & PageContext,
  writes: MultipartWrites,
): Partial<LanceDbExtensions> {
  const { maxUploadBytes } = context;
  return {
    ...createWriteLogOperations(context),
    ...createJobExtensions(context),
    ...createBlobOperations(context),
    ...createPrewarmOperations(context),
    ...createCloneOperations(context),
    async addColumnsFromSchema({ branch }, data, call) {
      const { file, schema } = await collectUpload(data, { maxBytes: maxUploadBytes, signal: call.signal });
      if (schema.fields.length === 0) throw new LanceError("InvalidInput", "the schema has no columns");
      checkBlobs(schema.fields);
      checkTypes(schema.fields);
      const added = await withGuarded(context, call, { branch }, async ({ table, wait, commit }) => {
        const current = await wait(() => schemaOf(table));
        for (const { name } of schema.fields) requireNewName(current, checkName(name));
        return commit(() => table.addColumnsWithSchema(file));
      });
      return create(AddColumnsFromSchemaResponseSchema, { version: BigInt(added.version) });
    },
    async createMultipartWrite({ branch }, { id }) {
      const table = await requireTable(context, id);
      return create(CreateMultipartWriteResponseSchema, { uploadId: await writes.begin(table, branch) });
    },
    async completeMultipartWrite({ branch, uploadId }, call) {
      const table = await requireTable(context, call.id);
      const { rows, version } = await writes.complete({ id: uploadId, table, branch }, call);
      return create(CompleteMultipartWriteResponseSchema, { version, numInsertedRows: rows });
    },
    async abortMultipartWrite({ branch, uploadId }, { id }) {
      const table = await requireTable(context, id);
      await writes.abort({ id: uploadId, table, branch });
      return create(AbortMultipartWriteResponseSchema);
    },
  };
}
