import { create } from "@bufbuild/protobuf";
import { Transaction_RestoreSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { RestoreTableResponseSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import {
  DescribeTableVersionResponseSchema,
  ListTableVersionsResponseSchema,
  type TableVersion,
  TableVersionSchema,
} from "../../../../gen/lance/namespace/v1/version_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { commitChange } from "../../format/changes/commit.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readSegments } from "../../format/files/index-section.ts";
import { copyMessage } from "../../format/files/manifest.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import { openBranch } from "../../format/versions/refs/refs.ts";
import { readTransaction } from "../../format/versions/transaction-records.ts";
import {
  describeVersion,
  listVersions,
  readVersion,
  type VersionEntry,
} from "../../format/versions/version-files.ts";
import type { DirectAccessContext, PageContext } from "../context.ts";
import { decodeToken, encodeToken, pageSize } from "../paging.ts";
import { commitsHere } from "../tables/direct-access.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf, isMain, withData } from "../tables/open-data.ts";
import { isWritten } from "../tables/table-data.ts";
import { adoptVersions } from "./adopt.ts";

/** The operations on the history of a table. */
export function createVersionOperations(
  context: DataContext & PageContext & DirectAccessContext,
): Pick<LanceNamespace, "listTableVersions" | "describeTableVersion" | "restoreTable"> {
  /** Clients with managed versioning ask for the newest version before they commit. */
  async function adoptNewest(table: FoundTable, dataset: DatasetRef, newest: bigint): Promise<void> {
    if (commitsHere(context, table.properties)) await adoptVersions(context.log, dataset, newest);
  }
  return {
    async listTableVersions({ branch, descending = false, limit, pageToken }, call) {
      const listing = descending ? "versions-descending" : "versions";
      const after = versionInToken(decodeToken(listing, pageToken));
      const table = await requireTable(context, call);
      const dataset = await openDataset(context, table, branch);
      const size = pageSize(context, limit);
      const found = await listVersions(dataset, { descending, after, limit: size + 1 });
      if (found.length === 0) await refuseLost(context, call);
      const page = found.slice(0, size);
      const last = page.at(-1);
      if (descending && after === undefined && page[0]) await adoptNewest(table, dataset, page[0].version);
      return create(ListTableVersionsResponseSchema, {
        versions: page.map(toTableVersion),
        ...(found.length > size && last && { pageToken: encodeToken(listing, String(last.version)) }),
      });
    },
    async describeTableVersion({ version, branch }, call) {
      const table = await requireTable(context, call);
      const dataset = await openDataset(context, table, branch);
      const entry = await unlessLost(context, call, describeVersion(dataset, version));
      if (version === undefined) await adoptNewest(table, dataset, entry.version);
      return create(DescribeTableVersionResponseSchema, { version: toTableVersion(entry) });
    },
    async restoreTable({ version, branch }, call) {
      if (version < 0n) throw new LanceError("InvalidInput", `version ${version} is negative`);
      const table = await requireTable(context, call);
      // LanceDB's remote client restores the version that it looks at, and sends 0 for the newest one.
      const wanted =
        version === 0n ? await unlessLost(context, call, newestVersion(context, table, branch)) : version;
      const dataset = datasetOf(context, table, branch);
      const transaction = await withData(context, table, { version: wanted, branch }, async (native) => {
        await engineCall(() => native.restore());
        return afterChange(async () => {
          const restored = BigInt(await native.version());
          await syncVersion(dataset, restored);
          if (isMain(branch)) await checkStillThere(dataset, { wanted, restored });
          return readTransaction(dataset, await readVersion(dataset, restored));
        }, "TableVersionNotFound");
      });
      return create(RestoreTableResponseSchema, { ...(transaction && { transactionId: transaction.uuid }) });
    },
  };
}

/**
 * Takes a restored version back if another gateway has pruned the version that was wanted meanwhile, because the files of both may go. Pruning
 * looks for versions after it has deleted the manifest, so one of the two notices the other.
 *
 * @throws LanceError TableVersionNotFound
 */
async function checkStillThere(
  dataset: DatasetRef,
  { wanted, restored }: { readonly wanted: bigint; readonly restored: bigint },
): Promise<void> {
  try {
    await describeVersion(dataset, wanted);
  } catch (error) {
    if (!isLanceError(error, "TableVersionNotFound")) return;
    await takeNewestBack(dataset, restored);
    throw error;
  }
}

async function newestVersion(context: DataContext, table: FoundTable, branch: string | undefined) {
  return (await describeVersion(await openBranch(datasetOf(context, table), branch))).version;
}

/**
 * Returns the files of the table of a call, or of one of its branches.
 *
 * @throws LanceError TableNotFound, TableBranchNotFound; InvalidInput for an invalid name of a branch
 */
export async function requireDataset(
  context: DataContext,
  call: Pick<Call, "id">,
  branch?: string,
  id: Identifier = call.id,
): Promise<DatasetRef> {
  return openDataset(context, await requireTable(context, call, id), branch);
}

/** Opens a branch of a table, by default the main one, as a dataset. @throws LanceError TableBranchNotFound */
export async function openDataset(
  context: DataContext,
  table: FoundTable,
  branch?: string,
): Promise<DatasetRef> {
  await context.tables.checkNoEscape(table);
  return openBranch(datasetOf(context, table), isMain(branch) ? undefined : branch);
}

/**
 * Refuses a table that has lost its directory, instead of answering that it is empty. @throws LanceError
 * InvalidTableState
 */
export async function refuseLost(context: DataContext, call: Pick<Call, "id">): Promise<void> {
  await isWritten(context, await requireTable(context, call));
}

/**
 * Returns the result of work that needs a version of a table, of which a table that has lost its directory has none.
 *
 * @throws LanceError InvalidTableState for such a table; the errors of the work
 */
export async function unlessLost<T>(
  context: DataContext,
  call: Pick<Call, "id">,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isLanceError(error, "TableVersionNotFound")) await refuseLost(context, call);
    throw error;
  }
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

/**
 * Takes the newest version back: a further version has the content of the one before it. The engine's own restoration
 * would also take back what others commit at this moment.
 *
 * @throws Error if the version is not the newest any more; LanceError as {@link commitChange}
 */
async function takeNewestBack(dataset: DatasetRef, version: bigint): Promise<void> {
  const before = await readVersion(dataset, version - 1n);
  const indices = await readSegments(before);
  await commitChange(dataset, (manifest) => {
    if (manifest.version !== version) throw new Error("others have built on it");
    for (const name of Object.keys(manifest)) Reflect.deleteProperty(manifest, name);
    Object.assign(manifest, copyMessage(before.manifest));
    const value = create(Transaction_RestoreSchema, { version: version - 1n });
    return { operation: { case: "restore", value }, changeIndices: () => indices };
  });
}
