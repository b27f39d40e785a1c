import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import { schemaTable } from "../../../../arrow/ipc/message.ts";
import { splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { jsonSchemaSteps } from "../../../../arrow/json-schema.ts";
import { schemaSteps } from "../../../../arrow/schema.ts";
import {
  type DescribeTableRequest,
  DescribeTableResponseSchema,
  TableBasicStatsSchema,
  TableExistsResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { readTag, tagNotFound } from "../../format/versions/refs/refs.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { CatalogDataContext, DirectAccessContext } from "../context.ts";
import { credentialsFor, directAccess } from "./direct-access.ts";
import { requireTable } from "./find-table.ts";
import { datasetOf, isMain, type Reference, withData } from "./open-data.ts";
import { isWritten } from "./table-data.ts";

/** The operations that describe a table. */
export function createDescribeOperations(
  context: CatalogDataContext & DirectAccessContext,
): Pick<LanceNamespace, "describeTable" | "tableExists"> {
  return {
    async describeTable(request, call) {
      checkReference(request);
      const { id } = call;
      const table = await requireTable(context, { id });
      const credentials = await credentialsFor(context, table.path, request, call);
      const response = create(DescribeTableResponseSchema, {
        table: id.at(-1) ?? "",
        namespace: id.slice(0, -1),
        location: table.path,
        properties: { ...table.properties },
        ...directAccess(context, table.properties, credentials),
        ...(request.withTableUri && { tableUri: uriOf(context, table.path) }),
      });
      const pinned = request.version !== undefined || request.tag !== undefined || !isMain(request.branch);
      // A client that sets no flag gets the catalog's own answer, which does not read the data.
      const detailed = request.loadDetailedMetadata ?? false;
      if (!pinned && !detailed && !request.checkDeclared) return response;

      const declared = !(await isWritten(context, table));
      if (request.checkDeclared || detailed) response.isOnlyDeclared = declared;
      if (declared && !pinned) return response;
      return Object.assign(response, await describeData(context, table, request, detailed));
    },
    async tableExists({ version }, { id }) {
      const table = await requireTable(context, { id });
      if (version !== undefined)
        await withData(context, table, { version, readsNoRows: true }, async () => {});
      return create(TableExistsResponseSchema);
    },
  };
}

/** Returns a location as a URI, for any storage. */
function uriOf({ store }: CatalogDataContext, path: string): string {
  return store.files === undefined ? path : pathToFileURL(path).href;
}

/** Returns the fields of a description that only the dataset has. */
async function describeData(
  context: CatalogDataContext,
  table: FoundTable,
  { version, tag, branch }: DescribeTableRequest,
  detailed: boolean,
) {
  const reference = tag === undefined ? { version, branch } : await referenceOfTag(context, table, tag);
  return withData(context, table, { ...reference, readsNoRows: true }, async (native) => {
    if (!detailed) return { version: BigInt(await native.version()) };
    // The shared handle may move to a newer version between two calls; a copy does not.
    const current = await native.checkoutCurrent();
    try {
      return await details(context, table, current, reference.branch);
    } finally {
      current.close();
    }
  });
}

async function details(context: CatalogDataContext, table: FoundTable, native: NativeTable, branch?: string) {
  // Not at the same time: a handle cannot be closed while the engine works on it, not even after a failure.
  const version = await engineCall(() => native.version());
  const ipcFile = await engineCall(() => native.schema());
  // Each of these takes long for thousands of fields, and so does the encoding of the answer.
  const schema = await inSlices(schemaSteps(() => schemaTable(splitIpcFile(ipcFile).schemaMetadata)));
  const { manifest } = await readVersion(datasetOf(context, table, branch), BigInt(version));
  const jsonSchema = await inSlices(jsonSchemaSteps(schema));
  return {
    version: BigInt(version),
    schema: jsonSchema,
    metadata: { ...schema.metadata },
    stats: create(TableBasicStatsSchema, {
      numFragments: BigInt(manifest.fragments.length),
      numDeletedRows: manifest.fragments.reduce(
        (sum, { deletionFile }) => sum + BigInt(deletionFile?.numDeletedRows ?? 0n),
        0n,
      ),
    }),
  };
}

async function referenceOfTag(
  context: CatalogDataContext,
  table: FoundTable,
  name: string,
): Promise<Reference> {
  const tag = await readTag(datasetOf(context, table), name);
  if (tag !== undefined) return tag;
  throw tagNotFound(name);
}

function checkReference({ version, tag, branch }: DescribeTableRequest): void {
  if (tag !== undefined && (version !== undefined || (branch ?? "") !== "")) {
    throw new LanceError("InvalidInput", "a tag cannot be combined with a version or a branch");
  }
}
