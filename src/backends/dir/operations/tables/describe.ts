import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import { schemaTable } from "../../../../arrow/ipc/message.ts";
import { splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { jsonSchemaSteps } from "../../../../arrow/json-schema.ts";
import { schemaSteps } from "../../../../arrow/schema.ts";
import {
  type DescribeTableRequest,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
  GetTableStatsResponseSchema,
  TableBasicStatsSchema,
  TableExistsResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { readTag, tagNotFound } from "../../format/versions/refs/refs.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { CatalogDataContext, DirectAccessContext } from "../context.ts";
import { allIndices } from "../indices/all-indices.ts";
import { withGuarded } from "./call-data.ts";
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
      return Object.assign(response, await describeData(context, table, request));
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

/** Whether the answer to a request depends on the data, and not only on the catalog. A client that sets no flag gets the catalog's own answer. */
export function describesData(request: DescribeTableRequest): boolean {
  const { loadDetailedMetadata = false, checkDeclared = false } = request;
  return loadDetailedMetadata || checkDeclared || isPinned(request);
}

function isPinned({ version, tag, branch }: DescribeTableRequest): boolean {
  return version !== undefined || tag !== undefined || !isMain(branch);
}

/** Returns the fields of a description that come from the table's data, as far as the request asks for them. */
export async function describeData(
  context: DataContext,
  table: FoundTable,
  request: DescribeTableRequest,
): Promise<Partial<DescribeTableResponse>> {
  if (!describesData(request)) return {};
  const { loadDetailedMetadata: detailed = false, checkDeclared = false } = request;
  const isOnlyDeclared = !(await isWritten(context, table));
  const declared = checkDeclared || detailed ? { isOnlyDeclared } : {};
  const pinned = isPinned(request);
  if (isOnlyDeclared && !pinned) return declared;
  return { ...declared, ...(await versionFields(context, table, request, detailed)) };
}

/** Returns the fields of a description that only the dataset has. */
async function versionFields(
  context: DataContext,
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

async function details(context: DataContext, table: FoundTable, native: NativeTable, branch?: string) {
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

async function referenceOfTag(context: DataContext, table: FoundTable, name: string): Promise<Reference> {
  const tag = await readTag(datasetOf(context, table), name);
  if (tag !== undefined) return tag;
  throw tagNotFound(name);
}

/** @throws LanceError InvalidInput for a tag with a version or a branch */
export function checkReference({ version, tag, branch }: DescribeTableRequest): void {
  if (tag !== undefined && (version !== undefined || (branch ?? "") !== "")) {
    throw new LanceError("InvalidInput", "a tag cannot be combined with a version or a branch");
  }
}

/** The operation that returns the statistics of a table. */
export function createStatsOperations(context: DataContext): Pick<LanceNamespace, "getTableStats"> {
  return {
    getTableStats: ({ branch }, call) =>
      withGuarded(context, call, { branch }, async (data) => {
        const { totalBytes, numRows, fragmentStats } = await data.wait(() => data.table.stats());
        const indices = await data.wait(() => allIndices(context, data, branch));
        const { min, max, mean, p25, p50, p75, p99 } = fragmentStats.lengths;
        return create(GetTableStatsResponseSchema, {
          totalBytes: BigInt(totalBytes),
          numRows: BigInt(numRows),
          numIndices: BigInt(indices.length),
          fragmentStats: {
            numFragments: BigInt(fragmentStats.numFragments),
            numSmallFragments: BigInt(fragmentStats.numSmallFragments),
            lengths: {
              min: BigInt(min),
              max: BigInt(max),
              mean: BigInt(Math.round(mean)),
              p25: BigInt(p25),
              p50: BigInt(p50),
              p75: BigInt(p75),
              p99: BigInt(p99),
            },
          },
        });
      }),
  };
}
