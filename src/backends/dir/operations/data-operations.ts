import { create } from "@bufbuild/protobuf";
import { collectUpload } from "../../../arrow/upload/upload.ts";
import {
  AbortMultipartWriteResponseSchema,
  AddColumnsFromSchemaResponseSchema,
  CompleteMultipartWriteResponseSchema,
  CreateMultipartWriteResponseSchema,
} from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend, LanceDbExtensions } from "../../../namespace/lance-namespace.ts";
import type { DataContext } from "../data/data-context.ts";
import { createBlobOperations } from "./blobs/blobs.ts";
import { withBlobColumns } from "./blobs/legacy-blobs.ts";
import { createBackfillOperations } from "./columns/backfill.ts";
import { checkName } from "./columns/column-name.ts";
import { createColumnOperations, requireNewName, schemaOf } from "./columns/columns.ts";
import { createMetadataOperations } from "./columns/schema-metadata.ts";
import type {
  DirectAccessContext,
  EngineContext,
  PageContext,
  ReadContext,
  RowJobContext,
  UploadContext,
} from "./context.ts";
import { createIndexOperations } from "./indices/indices.ts";
import { createPrewarmOperations } from "./read/prewarm.ts";
import { createReadOperations } from "./read/read.ts";
import { createChangeOperations } from "./rows/change.ts";
import { checkBlobs, checkStorable, checkTypes } from "./rows/check-types.ts";
import { createMergeOperations } from "./rows/merge.ts";
import type { MergeLocks } from "./rows/merge-locks.ts";
import { createInsertOperations, type MultipartWrites } from "./rows/multipart.ts";
import { withGuarded } from "./tables/call-data.ts";
import { createStatsOperations } from "./tables/describe.ts";
import { requireTable } from "./tables/find-table.ts";
import { createWriteLogOperations } from "./tables/write-log.ts";
import { createBranchOperations } from "./versions/branches.ts";
import { createCherryPickOperations } from "./versions/cherry-pick.ts";
import { createTagOperations } from "./versions/tags.ts";
import { createTransactionOperations } from "./versions/transactions.ts";
import { createVersionOperations } from "./versions/versions.ts";

/** Context of the operations on the data of tables, for any catalog that lists the tables. */
export interface RowsContext
  extends DataContext,
    UploadContext,
    RowJobContext,
    EngineContext,
    ReadContext,
    PageContext,
    DirectAccessContext {}

/** Parts that the operations on data share with others. */
export interface RowsParts {
  readonly writes: MultipartWrites;
  readonly mergeLocks: Pick<MergeLocks, "withLock">;
}

/** The operations on the data of existing tables: rows, searches, columns, indices, versions, branches and tags. */
export function createDataOperations(context: RowsContext, { writes, mergeLocks }: RowsParts) {
  const operations = {
    ...createInsertOperations(context, writes),
    ...createReadOperations(context),
    ...createMergeOperations(context, mergeLocks),
    ...createChangeOperations(context),
    ...createStatsOperations(context),
    ...createVersionOperations(context),
    ...createTagOperations(context),
    ...createBranchOperations(context),
    ...createTransactionOperations(context),
    ...createColumnOperations(context),
    ...createBackfillOperations(context),
    ...createMetadataOperations(context),
    ...createIndexOperations(context),
  } satisfies Backend["operations"];
  return { operations, extensions: createRowExtensions(context, writes) };
}

type DataOperations = ReturnType<typeof createDataOperations>;

/** Names of the operations on data. */
export type DataOperation = keyof DataOperations["operations"] | keyof DataOperations["extensions"];

/** Names of LanceDB's own calls on the data of tables. */
type RowExtension =
  | keyof ReturnType<typeof createWriteLogOperations>
  | keyof ReturnType<typeof createBlobOperations>
  | keyof ReturnType<typeof createPrewarmOperations>
  | keyof ReturnType<typeof createCherryPickOperations>
  | "addColumnsFromSchema"
  | "createMultipartWrite"
  | "completeMultipartWrite"
  | "abortMultipartWrite";

/** Calls of LanceDB's remote clients on the data of tables. */
function createRowExtensions(
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
