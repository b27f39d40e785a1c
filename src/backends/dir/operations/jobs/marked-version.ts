import { isDeepStrictEqual } from "node:util";
import type { IndexMetadata, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { segmentId } from "../../format/files/index-section.ts";
import {
  columnFacts,
  FLAG_DELETION_FILES,
  FLAG_NO_TRANSACTION_FILES,
  FLAG_TABLE_CONFIG,
  FLAG_V2_FORMAT,
} from "../../format/files/manifest.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { COMMIT_MESSAGE, readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { type FoundVersion, findVersions, readVersionIfThere } from "../../format/versions/version-files.ts";
import type { Job } from "../../jobs/job.ts";
import type { DriverCommit } from "../../jobs/ray/cluster.ts";

/** A version whose commit message names a job. */
export interface MarkedVersion extends Pick<DriverCommit, "readVersion" | "operation"> {
  readonly version: bigint;
  readonly message: string;
}

/** Number of manifests that the search for the version of a job reads concurrently. */
const SEARCH_WIDTH = 16;

/** How much older the version of a job may look than the job, in milliseconds. */
const TOLERANCE_MS = 60_000;

/**
 * Returns the version that a job has made; undefined if it has made none.
 *
 * The times of the files bound the search, and not the numbers of the versions: a table that loses all of its versions begins with the
 * first number again.
 *
 * @param mark how its commit message begins
 */
export async function findMarked(
  job: Pick<Job, "createdAt">,
  dataset: DatasetRef,
  mark: string,
): Promise<MarkedVersion | undefined> {
  let found: MarkedVersion | undefined;
  await forEachOf(await findVersions(dataset), SEARCH_WIDTH, async (entry) => {
    if (found === undefined && (await isSince(dataset, entry, job.createdAt)))
      found = (await markedAt(dataset, entry.version, mark)) ?? found;
  });
  return found;
}

async function isSince({ store }: DatasetRef, { key, info }: FoundVersion, time: number): Promise<boolean> {
  const { modifiedMillis = 0 } = info ?? (await store.head(key)) ?? {};
  return modifiedMillis >= time - TOLERANCE_MS;
}

async function markedAt(
  dataset: DatasetRef,
  version: bigint,
  mark: string,
): Promise<MarkedVersion | undefined> {
  const file = await readVersionIfThere(dataset, version);
  const transaction = file && (await readTransactionMessage(dataset, file));
  const message = transaction?.transactionProperties[COMMIT_MESSAGE];
  if (transaction === undefined || message?.startsWith(mark) !== true) return undefined;
  const { readVersion, operation } = transaction;
  return { version, message, readVersion, operation };
}

/** Flags that a writer sets by the rest of a version, or by its own options, and not by what the one before has. */
const FREE_FLAGS = FLAG_DELETION_FILES | FLAG_V2_FORMAT | FLAG_TABLE_CONFIG | FLAG_NO_TRANSACTION_FILES;

/** Returns the flags that a version keeps. */
export function flagsOf({ manifest: { readerFeatureFlags, writerFeatureFlags } }: ManifestFile): bigint[] {
  return [readerFeatureFlags, writerFeatureFlags].map((flags) => flags & ~FREE_FLAGS);
}

/** Returns what identifies a segment of an index; writers add to the rest what older ones have left out. */
export function segmentFacts(segment: IndexMetadata) {
  const { name, fields, datasetVersion } = segment;
  return { id: segmentId(segment), name, fields, datasetVersion };
}

/** Returns the name of a part of a version that the next one has changed, of those that drivers leave as they are. */
export function changedPart(before: Manifest, next: Manifest): string | undefined {
  return Object.entries(KEPT).find(([, partOf]) => !isDeepStrictEqual(partOf(before), partOf(next)))?.[0];
}

/** Reads the version that a driver has read; returns why it cannot follow that one if it is gone or has other columns. */
export async function readBase({ dataset, next, readVersion }: DriverCommit): Promise<ManifestFile | string> {
  const read = await readVersionIfThere(dataset, readVersion);
  if (read === undefined) return `the version ${readVersion}, which its driver has read, is gone`;
  const isSame = isDeepStrictEqual(columnFacts(read.manifest.fields), columnFacts(next.manifest.fields));
  return isSame ? read : "the columns of the table have changed meanwhile";
}

const KEPT: Readonly<Record<string, (manifest: Manifest) => unknown>> = {
  fields: ({ fields }) => columnFacts(fields),
  metadata: ({ schemaMetadata, tableMetadata }) => [textsOf(schemaMetadata), tableMetadata],
  configuration: ({ config }) => config,
  "directories outside": ({ basePaths }) =>
    basePaths.map(({ id, name, isDatasetRoot, path }) => [id, name, isDatasetRoot, path]).sort(),
  branch: ({ branch }) => branch,
};

function textsOf(bytes: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(bytes).map(([name, value]) => [name, Buffer.from(value).toString("hex")]),
  );
}
