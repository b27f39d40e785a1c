import type { DeclareTableRequest } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import {
  type BatchDeleteTableVersionsRequest,
  type CreateTableVersionEntry,
  type CreateTableVersionRequest,
  ManifestNamingScheme,
} from "../../../../gen/lance/namespace/v1/version_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import { digestOf } from "../../batch/intent.ts";
import { refuseWhileRemoved } from "../../batch/journal.ts";
import type { Batch, PlannedDeletion } from "../../batch/run.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { Mutation } from "../../catalog/commits/decide.ts";
import { createDraft, type Draft } from "../../catalog/state/draft.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { type Predecessor, prepareVersion, type StagedVersion } from "../../format/changes/staged-version.ts";
import {
  type DatasetRef,
  type NamingScheme,
  normalizeBranch,
  versionsDirectory,
} from "../../format/dataset.ts";
import { checkRanges, selectVersions, type VersionRange } from "../../format/versions/delete-versions.ts";
import type { PreparedVersion } from "../../format/versions/publish-version.ts";
import { openBranch } from "../../format/versions/refs/refs.ts";
import { findVersions, latestVersion, type VersionName } from "../../format/versions/version-files.ts";
import type { CatalogDataContext } from "../context.ts";
import { takeRow } from "../tables/drop.ts";
import { findTable } from "../tables/find-table.ts";
import { checkNewIdentifier, tableNotFound } from "../tables/naming/object-names.ts";
import { planClaim } from "../tables/naming/plan-claim.ts";
import { datasetOf } from "../tables/open-data.ts";
import { isWritten } from "../tables/table-data.ts";
import { adoptVersions } from "./adopt.ts";
import { refuseReferred } from "./refuse-referred.ts";

/** Collects the parts of a batch and checks each as if the parts before it were done. It writes nothing. */
export interface Planner {
  /** The batch so far. */
  readonly batch: Batch;
  createVersion(
    id: Identifier,
    request: CreateTableVersionRequest | CreateTableVersionEntry,
  ): Promise<PreparedVersion>;
  /** Plans a deletion. @returns its index among the batch's deletions */
  deleteVersions(id: Identifier, request: BatchDeleteTableVersionsRequest): Promise<number>;
  /** Plans a declaration. @returns the new table's location */
  declare(id: Identifier, request: DeclareTableRequest): Promise<string>;
  deregister(id: Identifier): Promise<FoundTable>;
}

/** Begins a batch on the newest state of the catalog. */
export async function createPlanner(context: CatalogDataContext): Promise<Planner> {
  const { catalog } = context;
  const sinceLook = startStopwatch();
  const draft = createDraft(await catalog.read());
  const versions: PreparedVersion[] = [];
  const changes: Mutation<void>[] = [];
  const deletions: PlannedDeletion[] = [];
  const locations: string[] = [];
  const declared = new Set<string>();
  const newest = new Map<string, Predecessor | undefined>();
  /** The new versions of each dataset. */
  const planned = new Map<string, PreparedVersion[]>();
  /** The versions of each dataset that has deletions, as after the parts so far. */
  const left = new Map<string, VersionName[]>();

  async function tableOf(id: Identifier): Promise<FoundTable> {
    const table = id.length === 0 ? undefined : await findTable(context, draft, id);
    if (table === undefined) throw tableNotFound(id);
    await context.layout.checkNoEscape(table.location);
    return table;
  }
  async function newestOf(dataset: DatasetRef): Promise<Predecessor | undefined> {
    const key = versionsDirectory(dataset);
    if (newest.has(key)) return newest.get(key);
    const latest = await latestVersion(dataset);
    if (latest !== undefined) await adoptVersions(context.log, dataset, latest.version);
    newest.set(key, latest);
    return latest;
  }
  /** Returns the digests of the versions that a deletion takes from the end of a history. */
  async function digestsOfLast(dataset: DatasetRef, ranges: readonly VersionRange[]) {
    const directory = versionsDirectory(dataset);
    const made = planned.get(directory) ?? [];
    const { last, kept } = selectVersions(
      left.get(directory) ?? [...(await findVersions(dataset)), ...made],
      ranges,
    );
    left.set(directory, [...kept]);
    const digests: Record<string, string> = {};
    await forEachOf(last, READS, async ({ version, key }) => {
      const own = made.find((each) => each.key === key);
      const bytes = own?.bytes ?? (await dataset.store.get(key));
      if (bytes !== undefined) digests[String(version)] = digestOf(bytes);
    });
    return digests;
  }
  function change(apply: (draft: Draft) => void): void {
    apply(draft);
    changes.push(apply);
  }
  return {
    batch: { versions, changes, deletions, locations, declared, departing: "keep" },
    async createVersion(id, request) {
      const table = await tableOf(id);
      if (request.version === 1n && !declared.has(table.location)) await isWritten(context, table);
      const dataset = datasetOf(context, table, normalizeBranch(request.branch));
      const checked = await prepareVersion(dataset, toStaged(request), await newestOf(dataset));
      const prepared = { ...checked, sinceLook };
      versions.push(prepared);
      if (prepared.exists) return prepared;
      const directory = versionsDirectory(dataset);
      newest.set(directory, prepared);
      const made = planned.get(directory) ?? [];
      planned.set(directory, made);
      made.push(prepared);
      left.get(directory)?.push(prepared);
      return prepared;
    },
    async deleteVersions(id, { branch, ranges }) {
      const checked = toRanges(ranges);
      const dataset = await openBranch(datasetOf(context, await tableOf(id)), branch);
      const end = ((await newestOf(dataset))?.version ?? 0n) + 1n;
      const bounded = checked.map((range) => (range.end < 0n ? { start: range.start, end } : range));
      checkRanges(bounded);
      await refuseReferred(dataset, bounded);
      const last = await digestsOfLast(dataset, bounded);
      return deletions.push({ dataset, ranges: bounded, last }) - 1;
    },
    async declare(id, { location: wanted, properties }) {
      await checkNewIdentifier(context, id);
      const { apply, location } = await planClaim(
        context,
        async () => draft,
        id,
        properties,
        wanted || undefined,
      );
      change(apply);
      declared.add(location);
      return location;
    },
    async deregister(id) {
      const table = await tableOf(id);
      if (table.listed) change((rows) => takeRow(context, rows, id));
      await refuseWhileRemoved(context.journal, table.location);
      if (isRootDirectory(table.location) && !table.listed) locations.push(table.location);
      return table;
    },
  };
}

/** Number of manifests that are read concurrently. */
const READS = 16;

/** Returns the staged version that a request describes. @throws LanceError InvalidInput; Unsupported for metadata beside the manifest */
export function toStaged(request: CreateTableVersionRequest | CreateTableVersionEntry): StagedVersion {
  const { version, manifestPath, manifestSize, eTag, namingScheme, metadata } = request;
  if (version <= 0n) throw new LanceError("InvalidInput", `version must be positive, not ${version}`);
  if (manifestPath === "") throw new LanceError("InvalidInput", "manifest_path must not be empty");
  if (Object.keys(metadata).length > 0)
    throw new LanceError("Unsupported", "the catalog keeps no metadata of versions beside their manifests");
  return {
    version,
    stagedKey: manifestPath,
    manifestSize: manifestSize === undefined ? undefined : Number(manifestSize),
    eTag: eTag || undefined,
    namingScheme: SCHEMES.get(namingScheme ?? ManifestNamingScheme.UNSPECIFIED),
  };
}

const SCHEMES: ReadonlyMap<ManifestNamingScheme, NamingScheme> = new Map([
  [ManifestNamingScheme.V1, "V1"],
  [ManifestNamingScheme.V2, "V2"],
]);

/** Returns the ranges of a request. @throws LanceError InvalidInput */
export function toRanges(ranges: BatchDeleteTableVersionsRequest["ranges"]): VersionRange[] {
  if (ranges.length === 0) throw new LanceError("InvalidInput", "ranges must not be empty");
  return ranges.map(({ startVersion: start, endVersion: end }) => {
    if (start >= 0n && end >= -1n) return { start, end };
    throw new LanceError(
      "InvalidInput",
      `the range from ${start} to ${end} cannot be: only its end may be -1`,
    );
  });
}
