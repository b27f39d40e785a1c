import { createHash } from "node:crypto";
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  DataFileSchema,
  type DataFragment,
  DataFragmentSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { isJsonObject } from "../../../../runtime/text.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { exactColumns, exactWithAnyIndex } from "../../engine/sql/exact-filter.ts";
import { findMisread } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { commitChange } from "../../format/changes/commit.ts";
import { replaceRows } from "../../format/changes/staged-rows.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { copyMessage, countRows, FLAG_DELETION_FILES } from "../../format/files/manifest.ts";
import { COMMIT_MESSAGE } from "../../format/versions/transaction-records.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import type { CatalogDataContext, DirectAccessContext, EngineContext } from "../context.ts";
import { workOnCluster } from "../jobs/elsewhere.ts";
import { tableOf } from "../jobs/jobs.ts";
import { findMarked } from "../jobs/marked-version.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { refuseMisread } from "../tables/refuse-misread.ts";
import { checkResult, readDefinition, readOutputSchema } from "./definition.ts";
import { parseViewQuery } from "./query-text.ts";
import { type RefreshContext, readsOf, replacement } from "./refresh.ts";
import { columnsForCluster } from "./source.ts";
import { readState, versionIdentity } from "./view-state.ts";

/** Tables, and the cluster that reads them with credentials of its own. */
export type ClusterRefreshContext = CatalogDataContext &
  RefreshContext &
  Pick<EngineContext, "cluster"> &
  Pick<DirectAccessContext, "vendor" | "clientStorageOptions">;

/** Defines how the drivers of refreshes work. */
export function describeClusterRefresh(context: ClusterRefreshContext, kind: string): void {
  const { cluster, catalog, clientStorageOptions, store, vendor } = context;
  cluster?.describe(kind, async (job, dataset) => {
    const view = await requireTable(context, { id: tableOf(await catalog.read(), job) });
    const { sourceQuery, outputSchema } = readDefinition(view);
    const query = parseViewQuery(sourceQuery);
    const source = await requireTable(context, { id: query.source });
    const { manifest: before } = await readVersion(dataset);
    const sourceData = datasetOf(context, source);
    const version = await sourceVersionOf(job, sourceData);
    const output = await readOutputSchema(outputSchema, context.maxUploadBytes);
    const { manifest: origin } = await readVersion(sourceData, version);
    const expressions = readsOf(query, output);
    refuseMisread(await findMisread(sourceData, origin), { expressions });
    const read = await columnsForCluster(context, { view, before, source, origin, query, output });
    if ("reason" in read)
      throw new LanceError(
        "ConcurrentModification",
        `a Ray cluster does not refresh this view now: ${read.reason}`,
      );
    checkResult(read.result, output.schema);
    const columns = await exactColumns(query.columns, read.fields);
    const filter = query.where === undefined ? undefined : await exactWithAnyIndex(query.where, read.fields);
    const credentials = await vendor?.vendForWork(store.keyOf(source.path), "read");
    return {
      columns: columns.map(([name, value]) => ({ name, value })),
      ...(filter !== undefined && { filter }),
      ...{ source_uri: source.path, source_version: Number(version), view_version: Number(before.version) },
      state: stateOf({ source, origin, text: sourceQuery, before }),
      source_options: { ...clientStorageOptions, ...credentials },
    };
  });
}

/**
 * Returns what distinguishes the versions that a driver reads from others of their numbers, which source and view have after they were
 * created again or restored from a backup.
 */
function stateOf({ source, origin, text, before }: Parameters<typeof replacement>[0]): string {
  const parts = [source.location, versionIdentity(origin), versionIdentity(before), text];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

async function sourceVersionOf({ spec }: Job, dataset: DatasetRef): Promise<bigint> {
  const wanted = spec["sourceVersion"];
  if (wanted !== undefined) return BigInt(String(wanted));
  const latest = await latestVersion(dataset);
  if (latest === undefined) throw new LanceError("TableNotFound", "the source of the view has no data");
  return latest.version;
}

/** Has a cluster compute all rows of a view, and puts them in place of the former ones by one version, which also records their source. */
export function refreshOnCluster(
  context: ClusterRefreshContext,
  job: Job,
  signal: AbortSignal,
): Promise<JobFacts> {
  return workOnCluster<JobFacts>(context, job, signal, {
    async prepare() {},
    recover: (dataset) => refreshedBy(job, dataset),
    async finish(report, { table, dataset }) {
      return (
        (await refreshedBy(job, dataset)) ??
        commitRows(context, job, { view: table, dataset, report }, signal)
      );
    },
  });
}

function markOf({ id }: Pick<Job, "id">): string {
  return `lance-gateway refresh ${id}`;
}

/** Returns the facts of the version that a job has made; undefined if it has made none. */
async function refreshedBy(job: Job, dataset: DatasetRef): Promise<JobFacts | undefined> {
  const found = await findMarked(job, dataset, markOf(job));
  if (found?.operation.case !== "overwrite") return undefined;
  const { manifest } = await readVersion(dataset, found.version);
  const { rows } = countRows({ fragments: found.operation.value.fragments });
  return factsOf(rows, readState(manifest)?.sourceVersion, found.version);
}

interface Reported {
  readonly view: FoundTable;
  readonly dataset: DatasetRef;
  readonly report: JsonObject;
}

async function commitRows(
  context: ClusterRefreshContext,
  job: Job,
  { view, dataset, report }: Reported,
  signal: AbortSignal,
): Promise<JobFacts> {
  const [sourceVersion, viewVersion] = [report["source_version"], report["view_version"]].map(versionIn);
  const { manifest: before } = await readVersion(dataset, viewVersion);
  const { sourceQuery: text } = readDefinition(view);
  const source = await requireTable(context, { id: parseViewQuery(text).source });
  const { manifest: origin } = await readVersion(datasetOf(context, source), sourceVersion);
  const provenance = { source, origin, text, before };
  if (stateOf(provenance) !== report["state"])
    throw new LanceError("ConcurrentModification", "the source or the view has been replaced meanwhile");
  const fragments = readFragments(report, before);
  await checkFiles(dataset, fragments);
  const staged = copyMessage(before);
  staged.fragments = fragments;
  staged.readerFeatureFlags &= ~FLAG_DELETION_FILES;
  staged.writerFeatureFlags &= ~FLAG_DELETION_FILES;
  const [record, replace] = [replacement(provenance), replaceRows(staged)];
  const { version } = await commitChange(
    dataset,
    (manifest) => {
      record(manifest);
      return replace(manifest);
    },
    { signal, properties: { [COMMIT_MESSAGE]: markOf(job) } },
  );
  return factsOf(countRows({ fragments }).rows, origin.version, version);
}

function factsOf(rows: bigint, sourceVersion: bigint | string | undefined, version: bigint): JobFacts {
  return { mode: "full", rows: Number(rows), sourceVersion: Number(sourceVersion), version: Number(version) };
}

function versionIn(value: JsonObject[string] | undefined): bigint {
  if (!isCount(value) || value === 0) throw badReport("it names no version");
  return BigInt(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Name of a data file. */
const FILE = /^[\w-][\w.-]*\.lance$/;

/** Reads the fragments that a driver has reported: with all columns of the view. @throws LanceError Internal for anything else */
function readFragments({ fragments }: JsonObject, { fields }: Manifest): DataFragment[] {
  if (!Array.isArray(fragments)) throw badReport("it has no fragments");
  const known = new Set(fields.map(({ id }) => id));
  const top = fields.filter(({ parentId }) => parentId < 0).map(({ id }) => id);
  const seen = new Set<string>();
  return fragments.map((fragment) => {
    if (!isJsonObject(fragment) || !Array.isArray(fragment["files"]) || !isCount(fragment["physical_rows"]))
      throw badReport("a fragment is not described as it should be");
    const files = fragment["files"].map((file) => {
      const read = isJsonObject(file) ? fileIn(file) : undefined;
      if (read === undefined || seen.has(read.path) || read.fields.some((id) => !known.has(id)))
        throw badReport("a file is not described as it should be");
      seen.add(read.path);
      return read;
    });
    const own = new Set(files.flatMap((file) => file.fields));
    if (!top.every((id) => own.has(id))) throw badReport("a fragment lacks columns of the view");
    return create(DataFragmentSchema, { files, physicalRows: BigInt(fragment["physical_rows"]) });
  });
}

function fileIn({ path, fields, column_indices, ...file }: JsonObject) {
  const numbers = [file["file_major_version"], file["file_minor_version"], file["file_size_bytes"]];
  const isWhole =
    typeof path === "string" &&
    FILE.test(path) &&
    Array.isArray(fields) &&
    fields.every(isCount) &&
    Array.isArray(column_indices) &&
    column_indices.every((index) => Number.isSafeInteger(index)) &&
    column_indices.length === fields.length &&
    numbers.every(isCount);
  if (!isWhole) return undefined;
  const [major, minor, size] = numbers as [number, number, number];
  return create(DataFileSchema, {
    ...{ path, fields: fields as number[], columnIndices: column_indices as number[] },
    ...{ fileMajorVersion: major, fileMinorVersion: minor, fileSizeBytes: BigInt(size) },
  });
}

/** Number of files that are looked at concurrently. */
const LOOKS = 16;

/** @throws LanceError Internal if a file is missing or has another size */
async function checkFiles(dataset: DatasetRef, fragments: readonly DataFragment[]): Promise<void> {
  const files = fragments.flatMap((fragment) => fragment.files);
  await forEachOf(files, LOOKS, async ({ path, fileSizeBytes }) => {
    const info = await dataset.store.head(`${dataDirectory(dataset)}/data/${path}`);
    if (info?.size !== Number(fileSizeBytes)) throw badReport(`the file ${path} is not as described`);
  });
}

function badReport(reason: string): LanceError {
  return new LanceError("Internal", `the driver on Ray has reported no rows of the view: ${reason}`);
}
