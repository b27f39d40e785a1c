import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import { toJsonSchema } from "../../../arrow/json-schema.ts";
import { decodeSchema } from "../../../arrow/schema.ts";
import { splitIpcFile } from "../../../arrow/stream.ts";
import {
  type DescribeTableRequest,
  DescribeTableResponseSchema,
  TableBasicStatsSchema,
  TableExistsResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { readDatasetManifest } from "../engine/dataset-manifest.ts";
import { engineCall } from "../engine/errors.ts";
import type { NativeTable } from "../engine/native.ts";
import { type DirContext, refuseBranch } from "./context.ts";
import { type FoundTable, requireTable, withData } from "./lookup.ts";

/** The operations that tell about a table. */
export function createDescribeOperations(
  context: DirContext,
): Pick<LanceNamespace, "describeTable" | "tableExists"> {
  const { layout } = context;
  return {
    async describeTable(request, { id }) {
      checkReference(request);
      const table = await requireTable(context, id);
      const response = create(DescribeTableResponseSchema, {
        table: id.at(-1) ?? "",
        namespace: id.slice(0, -1),
        location: table.path,
        properties: { ...table.properties },
        ...(request.withTableUri && { tableUri: pathToFileURL(table.path).href }),
      });
      const pinned = request.version !== undefined || request.tag !== undefined;
      // A client that sets no flag gets the catalog's own answer, which costs no look at the data.
      const detailed = request.loadDetailedMetadata ?? false;
      if (!pinned && !detailed && !request.checkDeclared) return response;

      const declared = !(await layout.hasData(table.location));
      if (request.checkDeclared || detailed) response.isOnlyDeclared = declared;
      if (declared && !pinned) return response;
      return Object.assign(response, await describeData(context, table, request, detailed));
    },
    async tableExists({ version }, { id }) {
      const table = await requireTable(context, id);
      if (version !== undefined) await withData(context, table, version, async () => {});
      return create(TableExistsResponseSchema);
    },
  };
}

/** The fields of a description that only the dataset can tell. */
async function describeData(
  context: DirContext,
  table: FoundTable,
  { version, tag }: DescribeTableRequest,
  detailed: boolean,
) {
  const wanted = tag === undefined ? version : await versionOfTag(context, table, tag);
  return withData(context, table, wanted, async (native) => {
    if (!detailed) return { version: BigInt(await native.version()) };
    // The shared handle may move on between two questions; a copy does not.
    const current = await native.checkoutCurrent();
    try {
      return await details(table, current);
    } finally {
      current.close();
    }
  });
}

async function details(table: FoundTable, native: NativeTable) {
  const [version, ipcFile] = await engineCall(() => Promise.all([native.version(), native.schema()]));
  const schema = decodeSchema(splitIpcFile(ipcFile).schemaMetadata);
  const manifest = await readDatasetManifest(table.path, version);
  return {
    version: BigInt(version),
    schema: toJsonSchema(schema),
    metadata: { ...schema.metadata },
    stats: create(TableBasicStatsSchema, {
      numFragments: BigInt(manifest.fragments),
      numDeletedRows: BigInt(manifest.deletedRows),
    }),
  };
}

async function versionOfTag(context: DirContext, table: FoundTable, tag: string): Promise<bigint> {
  return withData(context, table, undefined, async (native) => {
    const tags = await engineCall(async () => (await native.tags()).list());
    const version = Object.hasOwn(tags, tag) ? tags[tag]?.version : undefined;
    if (version === undefined)
      throw new LanceError("TableTagNotFound", `tag ${JSON.stringify(tag)} does not exist`);
    return BigInt(version);
  });
}

function checkReference({ version, tag, branch }: DescribeTableRequest): void {
  if (tag !== undefined && (version !== undefined || (branch ?? "") !== "")) {
    throw new LanceError("InvalidInput", "a tag cannot be combined with a version or a branch");
  }
  refuseBranch(branch);
}
