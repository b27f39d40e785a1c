import { create } from "@bufbuild/protobuf";
import { RestoreTableResponseSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import {
  DescribeTableVersionResponseSchema,
  ListTableVersionsResponseSchema,
  type TableVersion,
  TableVersionSchema,
} from "../../../../gen/lance/namespace/v1/version_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { CatalogContext, TableContext } from "../../catalog/catalog-context.ts";
import { engineCall } from "../../engine/errors.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { openBranch } from "../../format/refs.ts";
import { syncVersion } from "../../format/sync-version.ts";
import { readTransaction } from "../../format/transaction-records.ts";
import { describeVersion, listVersions, readVersion, type VersionEntry } from "../../format/version-files.ts";
import type { PageContext } from "../context.ts";
import { decodeToken, encodeToken, pageSize } from "../paging.ts";
import { datasetOf, type FoundTable, isMain, requireTable, withData } from "../tables/lookup.ts";
import { isWritten } from "../tables/table-data.ts";

/** The operations on the history of a table. */
export function createVersionOperations(
  context: TableContext & PageContext,
): Pick<LanceNamespace, "listTableVersions" | "describeTableVersion" | "restoreTable"> {
  return {
    async listTableVersions({ branch, descending = false, limit, pageToken }, { id }) {
      const listing = descending ? "versions-descending" : "versions";
      const after = versionInToken(decodeToken(listing, pageToken));
      const dataset = await requireDataset(context, id, branch);
      const size = pageSize(context, limit);
      const found = await listVersions(dataset, { descending, after, limit: size + 1 });
      if (found.length === 0) await refuseLost(context, id);
      const page = found.slice(0, size);
      const last = page.at(-1);
      return create(ListTableVersionsResponseSchema, {
        versions: page.map(toTableVersion),
        ...(found.length > size && last && { pageToken: encodeToken(listing, String(last.version)) }),
      });
    },
    async describeTableVersion({ version, branch }, { id }) {
      const dataset = await requireDataset(context, id, branch);
      return create(DescribeTableVersionResponseSchema, {
        version: toTableVersion(await describeVersion(dataset, version)),
      });
    },
    async restoreTable({ version, branch }, { id }) {
      if (version < 0n) throw new LanceError("InvalidInput", `version ${version} is negative`);
      const table = await requireTable(context, id);
      // LanceDB's remote client restores the version that it looks at, and sends 0 for the newest one.
      const wanted = version === 0n ? await newestVersion(context, table, branch) : version;
      const restored = await withData(context, table, { version: wanted, branch }, (native) =>
        engineCall(async () => {
          await native.restore();
          return BigInt(await native.version());
        }),
      );
      const dataset = datasetOf(context, table, branch);
      await syncVersion(dataset, restored);
      const transaction = await readTransaction(dataset, await readVersion(dataset, restored));
      return create(RestoreTableResponseSchema, { ...(transaction && { transactionId: transaction.uuid }) });
    },
  };
}

async function newestVersion(context: TableContext, table: FoundTable, branch: string | undefined) {
  return (await describeVersion(await openBranch(datasetOf(context, table), branch))).version;
}

/**
 * Returns the files of the table of a call, or of one of its branches.
 *
 * @throws LanceError TableNotFound, TableBranchNotFound; InvalidInput for an invalid name of a branch
 */
export async function requireDataset(
  context: TableContext,
  id: Identifier,
  branch?: string,
): Promise<DatasetRef> {
  const table = await requireTable(context, id);
  await context.layout.checkNoEscape(table.location);
  return openBranch(datasetOf(context, table), isMain(branch) ? undefined : branch);
}

/**
 * Refuses a table that has lost its directory, instead of answering that it is empty. @throws LanceError
 * InvalidTableState
 */
export async function refuseLost(context: CatalogContext, id: Identifier): Promise<void> {
  const { location } = await requireTable(context, id);
  await isWritten(context, location);
}

/**
 * Returns a version in the form of answers. Its path is the object path by which Lance's own clients commit and read.
 */
export function toTableVersion({
  version,
  key,
  manifestSize,
  eTag,
  timestampMillis,
}: VersionEntry): TableVersion {
  return create(TableVersionSchema, {
    version,
    manifestPath: key,
    manifestSize: BigInt(manifestSize),
    timestampMillis: BigInt(timestampMillis),
    ...(eTag !== undefined && { eTag }),
  });
}

function versionInToken(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,20}$/.test(text)) return BigInt(text);
  throw new LanceError("InvalidInput", "page_token is not from this listing");
}
