import { isDeepStrictEqual } from "node:util";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { lacksValues } from "../../format/changes/staged-rows.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readSegments } from "../../format/files/index-section.ts";
import { countRows, largestFragmentId } from "../../format/files/manifest.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import type { Job } from "../../jobs/job.ts";
import type { DriverCommit } from "../../jobs/ray/cluster.ts";
import { checkName } from "../columns/column-name.ts";
import { changedPart, findMarked, flagsOf, readBase, segmentFacts } from "./marked-version.ts";

/** Result of an import on a cluster. */
export interface ClusterImport {
  readonly rows: number;
  readonly version: number;
}

/** Returns the message of the commit of a job, by which its rows are found again. */
export function markOf({ id }: Pick<Job, "id">): string {
  return `lance-gateway import ${id}`;
}

/** Returns the version that a job has made; undefined if it has made none. */
export async function committedBy(job: Job, dataset: DatasetRef): Promise<ClusterImport | undefined> {
  const found = await findMarked(job, dataset, markOf(job));
  if (found === undefined) return undefined;
  const fragments = [...(addedBy(found.operation) ?? [])];
  return { rows: Number(countRows({ fragments }).rows), version: Number(found.version) };
}

function addedBy({ case: kind, value }: DriverCommit["operation"]): readonly DataFragment[] | undefined {
  return kind === "append" || kind === "overwrite" ? value.fragments : undefined;
}

/** Returns why a version does more than to add the rows of its transaction to the one before; undefined if it does not. */
export async function whyNoAddition(commit: DriverCommit): Promise<string | undefined> {
  const { before, next, operation } = commit;
  const expected = before === undefined ? "overwrite" : "append";
  if (operation.case !== expected) return `an import makes no ${operation.case ?? "unknown change"} here`;
  const reason = whyNoFragments(before?.manifest, next.manifest, addedBy(operation) ?? []);
  return reason ?? (await (before === undefined ? whyNoFirst(next) : whyNoNext(commit, before)));
}

/** Returns why fragments are not those of the version before and then the added ones, with files of their own. */
function whyNoFragments(
  before: Manifest | undefined,
  next: Manifest,
  added: readonly DataFragment[],
): string | undefined {
  const kept = before?.fragments ?? [];
  const own = next.fragments.slice(kept.length);
  if (next.fragments.length !== kept.length + added.length) return "it has other fragments";
  if (!isDeepStrictEqual(next.fragments.slice(0, kept.length), kept)) return "it has changed rows";
  if (!isDeepStrictEqual(own.map(contentOf), added.map(contentOf)))
    return "it has other rows than its transaction";
  if (own.some(({ deletionFile }) => deletionFile !== undefined)) return "some of its rows are deleted";
  const files = own.flatMap((fragment) => fragment.files);
  if (files.some(({ baseId, path }) => baseId !== undefined || path.includes("/")))
    return "it has files outside of the directory of the table's data";
  const paths = [...kept.flatMap((fragment) => fragment.files), ...files].map(({ path }) => path);
  const old = new Set(paths.slice(0, paths.length - files.length));
  const names = new Set(files.map(({ path }) => path));
  if (names.size < files.length || [...names].some((path) => old.has(path))) return "it has files twice";
  let largest = (before && largestFragmentId(before)) ?? -1n;
  for (const { id } of own) {
    if (id <= largest) return "it has given the numbers of fragments again";
    largest = id;
  }
  return lacksValues(next, added) ? "a column of the table has got another type meanwhile" : undefined;
}

/** The part of a fragment that a commit does not give. */
function contentOf({ files, physicalRows, deletionFile }: DataFragment): unknown {
  return [files, physicalRows, deletionFile];
}

/** Returns why a version is not the first one of a table with columns and rows alone. @throws LanceError InvalidInput for names that no column may have */
async function whyNoFirst(next: ManifestFile): Promise<string | undefined> {
  const { fields, config, branch, basePaths, schemaMetadata, tableMetadata } = next.manifest;
  for (const { parentId, name } of fields) if (parentId < 0) checkName(name);
  const maps = [config, schemaMetadata, tableMetadata];
  if (maps.some((map) => Object.keys(map).length > 0) || branch !== undefined || basePaths.length > 0)
    return "an import makes no configuration, metadata, directories outside and branch";
  if ((await readSegments(next)).length > 0) return "an import makes no indices";
  return flagsOf(next).every((flags) => flags === 0n) ? undefined : "it has flags of other features";
}

/** Returns why a version has changed more than rows; undefined if it has not. */
async function whyNoNext(commit: DriverCommit, before: ManifestFile): Promise<string | undefined> {
  const { next } = commit;
  const changed = changedPart(before.manifest, next.manifest);
  if (changed !== undefined) return `an import keeps the ${changed} of the table`;
  // The rows have no values of a column that was added since.
  const read = await readBase(commit);
  if (typeof read === "string") return read;
  if (!isDeepStrictEqual(await indicesOf(before), await indicesOf(next)))
    return "an import keeps the indices of the table";
  return isDeepStrictEqual(flagsOf(before), flagsOf(next)) ? undefined : "it has flags of other features";
}

/** Returns what identifies the segments of all indices. */
async function indicesOf(file: ManifestFile): Promise<unknown[]> {
  const facts = (await readSegments(file)).map(segmentFacts);
  return facts.sort((a, b) => (a.id < b.id ? -1 : 1));
}
