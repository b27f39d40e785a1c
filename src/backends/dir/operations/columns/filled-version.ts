import { isDeepStrictEqual } from "node:util";
import type {
  DataFile,
  DataFragment,
  IndexMetadata,
  Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { Transaction_Update_UpdateMode } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { coverOf, readSegments, segmentId } from "../../format/files/index-section.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import type { Job } from "../../jobs/job.ts";
import type { DriverCommit } from "../../jobs/ray/cluster.ts";
import { changedPart, findMarked, flagsOf, readBase, segmentFacts } from "../jobs/marked-version.ts";

/** The version that a backfill on a cluster has made. */
export interface FilledVersion {
  readonly rows: number;
  /** Number of rows whose function has failed; absent for none. */
  readonly rowsFailed?: number;
  readonly sourceVersion: number;
  readonly version: number;
}

/** Returns how the commit message of a job begins; the number of the rows that got a value follows, and that of those whose function has failed. */
export function fillMarkOf({ id }: Pick<Job, "id">): string {
  return `lance-gateway backfill ${id}: `;
}

/** Returns the version that a job has made; undefined if it has made none. */
export async function filledBy(job: Job, dataset: DatasetRef): Promise<FilledVersion | undefined> {
  const mark = fillMarkOf(job);
  const found = await findMarked(job, dataset, mark);
  if (found === undefined) return undefined;
  const counted = rowsIn(found.message, mark) ?? { rows: 0 };
  return { ...counted, sourceVersion: Number(found.readVersion), version: Number(found.version) };
}

function rowsIn(
  message: string | undefined,
  mark: string,
): Pick<FilledVersion, "rows" | "rowsFailed"> | undefined {
  if (message?.startsWith(mark) !== true) return undefined;
  const [, rows, failed] = /^(\d{1,15})(?:, (\d{1,15}) failed)?$/.exec(message.slice(mark.length)) ?? [];
  if (rows === undefined) return undefined;
  return { rows: Number(rows), ...(failed !== undefined && { rowsFailed: Number(failed) }) };
}

/** A field id in a data file whose column another file has taken over. */
const TAKEN_OVER = -2;

/** Returns why a version does more than to write a column of existing rows again; undefined if it does not. */
export async function whyNoFill(commit: DriverCommit, job: Job): Promise<string | undefined> {
  const { dataset, before, next, operation, message } = commit;
  if (rowsIn(message, fillMarkOf(job)) === undefined) return "its transaction does not name the job";
  const done = await filledBy(job, dataset);
  if (done !== undefined) return `the column is filled in version ${done.version} already`;
  if (operation.case !== "update") return `a backfill makes no ${operation.case ?? "unknown change"}`;
  const { updateMode, removedFragmentIds, newFragments } = operation.value;
  const isOfColumns = updateMode === Transaction_Update_UpdateMode.REWRITE_COLUMNS;
  if (before === undefined || !isOfColumns || removedFragmentIds.length > 0 || newFragments.length > 0)
    return "a backfill moves no rows";
  const part = changedPart(before.manifest, next.manifest);
  if (part !== undefined) return `a backfill keeps the ${part} of the table`;
  if (!isDeepStrictEqual(flagsOf(before), flagsOf(next))) return "it has flags of other features";
  const read = await readBase(commit);
  if (typeof read === "string") return read;
  const column = before.manifest.fields.find(
    ({ name, parentId }) => parentId < 0 && name === job.spec["column"],
  );
  if (column === undefined) return "its column is not in the table";
  const changed = changedFragments(before.manifest, next.manifest, read.manifest, column.id);
  return typeof changed === "string" ? changed : await whyNoIndices(before, next, column.id, changed);
}

/** Returns the ids of the fragments in which the column has been written again, or why a version changes them otherwise. */
function changedFragments(
  before: Manifest,
  next: Manifest,
  read: Manifest,
  field: number,
): ReadonlySet<number> | string {
  const changed = new Set<number>();
  const known = new Set(before.fragments.flatMap(({ files }) => files.map(({ path }) => path)));
  const readById = new Map(read.fragments.map((fragment) => [fragment.id, fragment]));
  if (before.fragments.length !== next.fragments.length) return "it has other fragments";
  for (const [at, old] of before.fragments.entries()) {
    const own = next.fragments[at] as DataFragment;
    if (isDeepStrictEqual(old, own)) continue;
    if (!isDeepStrictEqual(readById.get(old.id), old))
      return `the fragment ${old.id} has changed since its driver read it`;
    const reason = whyNoColumn(old, own, field, known);
    if (reason !== undefined) return `${reason} in the fragment ${old.id}`;
    changed.add(Number(own.id));
  }
  return changed;
}

/** Returns why a fragment is not the one before with the column in a file of its own. */
function whyNoColumn(
  old: DataFragment,
  own: DataFragment,
  field: number,
  known: Set<string>,
): string | undefined {
  const added = own.files.at(-1);
  if (added === undefined || !isDeepStrictEqual({ ...old, files: [] }, { ...own, files: [] }))
    return "it has other rows";
  if (!isDeepStrictEqual([...added.fields], [field])) return "it writes other columns";
  if (added.baseId !== undefined || added.path.includes("/"))
    return "it has a file outside of the directory of the table's data";
  if (known.has(added.path)) return "it has a file twice";
  known.add(added.path);
  const kept = old.files.map((file) => withoutField(file, field)).filter(hasFields);
  return isDeepStrictEqual(kept, own.files.slice(0, -1)) ? undefined : "it has other files";
}

function withoutField(file: DataFile, field: number): DataFile {
  const fields = file.fields.map((each) => (each === field ? TAKEN_OVER : each));
  return { ...file, fields };
}

function hasFields({ fields }: DataFile): boolean {
  return fields.some((each) => each !== TAKEN_OVER);
}

/** Returns why indices are not those of the version before, without the rows whose values have changed. */
async function whyNoIndices(
  before: ManifestFile,
  next: ManifestFile,
  field: number,
  changed: ReadonlySet<number>,
): Promise<string | undefined> {
  const [former, own] = [await readSegments(before), await readSegments(next)];
  const old = new Map(former.map((segment) => [segmentId(segment), segment]));
  const left = new Set(own.map(segmentId));
  const names = new Set(own.map(({ name }) => name));
  // Of the segments of an index that cover nothing any more, Lance keeps one.
  const isKept = (segment: IndexMetadata) =>
    left.has(segmentId(segment)) || (segment.fields.includes(field) && names.has(segment.name));
  if (!former.every(isKept)) return "a backfill keeps the indices of the table";
  for (const segment of own) {
    const earlier = old.get(segmentId(segment));
    if (earlier === undefined || !isDeepStrictEqual(segmentFacts(segment), segmentFacts(earlier)))
      return "a backfill keeps the indices of the table";
    const [covers, covered] = [coverOf(segment), coverOf(earlier)];
    for (const { id } of next.manifest.fragments) {
      const isStale = segment.fields.includes(field) && changed.has(Number(id));
      const expected = !isStale && covered(Number(id));
      if (covers(Number(id)) !== expected)
        return `the index ${segment.name} covers other rows than those whose values have stayed`;
    }
  }
  return undefined;
}
