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
import { createBlobOperations } from "./blobs/blobs.ts";
import { withBlobColumns } from "./blobs/legacy-blobs.ts";
import { checkName } from "./columns/column-name.ts";
import { requireNewName, schemaOf } from "./columns/columns.ts";
import type { CatalogDataContext, JobContext, PageContext, ReadContext, UploadContext } from "./context.ts";
import { createJobExtensions } from "./jobs.ts";
import { createPrewarmOperations } from "./read/prewarm.ts";
import { checkBlobs } from "./rows/check-blobs.ts";
import { checkStorable, checkTypes } from "./rows/check-types.ts";
import type { MultipartWrites } from "./rows/multipart.ts";
import { withGuarded } from "./tables/call-data.ts";
import { createCloneOperations } from "./tables/clone.ts";
import { requireTable } from "./tables/find-table.ts";
import { createWriteLogOperations } from "./tables/write-log.ts";
import { createCherryPickOperations } from "./versions/cherry-pick.ts";

/** Reasons why services of LanceDB are not served, by the operation. */
const REFUSED = {
  manageFunctions: "functions are Python, which this server does not run",
  manageViews: "the engine has no SQL over views; materialized views are served",
  manageSecrets: "secrets are not supported: they belong to functions, which this server does not run",
  manageAuthorization:
    "roles and policies of this server decide who may do what; they are files of its operator, which no call reads or changes",
  manageJobs: "the work of the engine has no step at which it could pause; a job can be cancelled",
} satisfies Partial<Record<keyof LanceDbExtensions, string>>;

/** Calls of LanceDB's remote clients beyond the contract; {@link REFUSED} has those without a meaning here. */
export function createLanceDbExtensions(
  context: CatalogDataContext &
    ReadContext &
    Pick<UploadContext, "maxUploadBytes"> &
    JobContext &
    PageContext,
  writes: MultipartWrites,
): Partial<LanceDbExtensions> {
  const { maxUploadBytes } = context;
  const refuse = (reason: string) => () => Promise.reject(new LanceError("Unsupported", reason));
  return {
    manageFunctions: refuse(REFUSED.manageFunctions),
    manageViews: refuse(REFUSED.manageViews),
    manageSecrets: refuse(REFUSED.manageSecrets),
    manageAuthorization: refuse(REFUSED.manageAuthorization),
    manageJobs: refuse(REFUSED.manageJobs),
    ...createWriteLogOperations(context),
    ...createJobExtensions(context),
    ...createBlobOperations(context),
    ...createPrewarmOperations(context),
    ...createCloneOperations(context),
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
