import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type BranchColumn,
  BranchColumnSchema,
  type BranchDiff,
  BranchDiffSchema,
  type BranchIndex,
  BranchIndexSchema,
  type BranchObstacle,
  BranchObstacleSchema,
  CherryPickBranchResponseSchema,
  DiffBranchResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DataContext } from "../../data/data-context.ts";
import {
  addBranchColumns,
  type BranchChanges,
  type BranchVersions,
  type Column,
  compareBranch,
  filesWith,
} from "../../format/changes/branch-columns.ts";
import { commitChange } from "../../format/changes/commit.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { type ManifestIndex, readIndices } from "../../format/files/index-section.ts";
import { BLOB_TYPE, checkReadable, countRows, EXTENSION, textOf } from "../../format/files/manifest.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { branchNotFound, readBranch } from "../../format/versions/refs/refs.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { filesOf } from "../../format/versions/version-parts.ts";
import { withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { REFERENCES } from "./refuse-referred.ts";
import { openDataset } from "./versions.ts";

/** Number of files that are copied concurrently. */
const COPIES = 8;

/** A branch beside the main branch, at one moment. */
interface Compared {
  readonly dataset: DatasetRef;
  readonly versions: BranchVersions;
  readonly changes: BranchChanges;
  readonly diff: BranchDiff;
}

/**
 * The operations that compare a branch with the main branch, and that bring its columns there. They work on manifests and
 * whole files, and read no value; see docs/adr/0005.
 */
export function createCherryPickOperations(
  context: DataContext,
): Pick<LanceDbExtensions, "diffBranch" | "cherryPickBranch"> {
  const locks = context.createLocks(REFERENCES);
  return {
    async diffBranch({ fromBranch }, call) {
      const table = await requireTable(context, call);
      const main = await openDataset(context, table);
      return create(DiffBranchResponseSchema, { diff: (await compare(main, fromBranch)).diff });
    },
    async cherryPickBranch({ fromBranch, dryRun = false }, call) {
      return locks.withLocks([joinIdentifier(call.id)], () =>
        withGuarded(context, call, {}, async ({ found, commit }) => {
          const main = datasetOf(context, found);
          let compared = await compare(main, fromBranch);
          if (!isPossible(compared)) return outcome(compared);
          if (dryRun) {
            refuseParts(compared);
            return outcome(compared);
          }
          const { version } = await commit(async () => {
            compared = await compare(main, fromBranch);
            const { mainVersion } = compared.diff;
            const after = isPossible(compared) ? await pick(main, compared, call.signal) : mainVersion;
            return { version: Number(after) };
          });
          return outcome(compared, isPossible(compared) ? BigInt(version) : undefined);
        }),
      );
    },
  };
}

/** Whether nothing keeps the columns of the branch from the main branch. */
function isPossible({ diff }: Compared): boolean {
  return diff.errors.length === 0;
}

function outcome(compared: Compared, mainVersionAfter?: bigint) {
  const { diff, changes } = compared;
  const isReady = isPossible(compared);
  return create(CherryPickBranchResponseSchema, {
    status: mainVersionAfter !== undefined ? "cherryPicked" : isReady ? "ready" : "failed",
    diff,
    preview: { promotedColumns: isReady ? changes.added.map(({ field }) => field.name) : [] },
    ...(mainVersionAfter !== undefined && { mainVersionAfter }),
  });
}

/**
 * Compares a branch with the main branch.
 *
 * @throws LanceError TableBranchNotFound; Unsupported for versions of newer software
 */
async function compare(main: DatasetRef, name: string): Promise<Compared> {
  const dataset = { ...main, branch: name };
  const found = await readBranch(main, name);
  if (found === undefined) throw branchNotFound(name);
  const { parentBranch, parentVersion } = found;
  const parent = await readVersion({ ...main, branch: parentBranch }, parentVersion);
  const [ours, theirs] = [await readVersion(main), await readVersion(dataset)];
  for (const { manifest } of [ours, theirs]) checkReadable(manifest);
  const versions = { parent: parent.manifest, main: ours.manifest, branch: theirs.manifest };
  const changes = compareBranch(versions);
  const [added, removed] = await indexChanges(ours, theirs);
  const diff = create(BranchDiffSchema, {
    fromBranch: name,
    parentVersion,
    mainVersion: ours.manifest.version,
    branchVersion: theirs.manifest.version,
    baseMoved: changes.baseMoved,
    rowCountMain: countRows(ours.manifest).rows,
    rowCountBranch: countRows(theirs.manifest).rows,
    rowSummary: {
      unchanged: changes.rows.unchanged,
      newOnBase: changes.rows.onMain,
      newOnBranch: changes.rows.onBranch,
    },
    addedColumns: changes.added.map(toColumn),
    removedColumns: changes.removed.map(toColumn),
    changedColumns: changes.changed.map((each) => ({
      name: each.main.field.name,
      main: toColumn(each.main),
      branch: toColumn(each.branch),
    })),
    addedIndexes: added,
    removedIndexes: removed,
    errors: obstaclesOf(changes, { parentBranch, hasIndices: added.length + removed.length > 0 }),
  });
  return { dataset, versions, changes, diff };
}

/** Returns why the columns of a branch cannot be brought to the main branch. */
function obstaclesOf(
  { added, removed, changed, baseMoved, rowChange }: BranchChanges,
  { parentBranch, hasIndices }: { readonly parentBranch: string | undefined; readonly hasIndices: boolean },
): BranchObstacle[] {
  const names = (columns: readonly Column[]) =>
    columns.map(({ field }) => JSON.stringify(field.name)).join(", ");
  const isChanged = rowChange !== "none" || hasIndices || removed.length + changed.length > 0;
  const found: readonly (readonly [isThere: boolean, code: string, message: string])[] = [
    [
      parentBranch !== undefined,
      "parentNotMain",
      `the branch came from branch ${JSON.stringify(parentBranch)}`,
    ],
    [baseMoved, "baseMoved", "rows or columns of the main branch have changed since the branch came from it"],
    [rowChange === "count", "rowCountMismatch", "the branch has another number of rows than it began with"],
    [rowChange === "values", "rowsChanged", "the branch has rewritten rows or values that it began with"],
    [removed.length > 0, "columnRemoved", `the branch lacks ${names(removed)}`],
    [
      changed.length > 0,
      "columnChanged",
      `the branch has changed ${names(changed.map((each) => each.main))}`,
    ],
    [added.length === 0 && !isChanged, "nothingToApply", "the branch has no changes"],
    [added.length === 0 && isChanged, "noColumnChanges", "the branch has added no columns"],
  ];
  return found
    .filter(([isThere]) => isThere)
    .map(([, code, message]) => create(BranchObstacleSchema, { code, message }));
}

/**
 * Copies the files with values of the added columns to the main branch, and commits them there.
 *
 * @returns the version of the main branch that has the columns
 * @throws LanceError ConcurrentModification, and the errors of {@link refuseParts} and {@link commitChange}
 */
async function pick(main: DatasetRef, compared: Compared, signal: AbortSignal): Promise<bigint> {
  const { dataset, versions, changes } = compared;
  const { added } = changes;
  refuseParts(compared);
  const files = filesWith(versions.branch, added);
  const names = new Map(files.map(({ path }) => [path, `${randomUUID().replaceAll("-", "")}.lance`]));
  const keyOf = (path: string) => `${dataDirectory(main)}/data/${path}`;
  let mayBeCommitted = false;
  try {
    await forEachOf([...names], COPIES, async ([from, to]) => {
      signal.throwIfAborted();
      if (await main.store.copy(`${dataDirectory(dataset)}/data/${from}`, keyOf(to))) return;
      throw new LanceError("ConcurrentModification", "the branch was deleted concurrently");
    });
    const apply = (manifest: BranchVersions["main"]) => {
      const change = addBranchColumns(manifest, versions, added, names);
      mayBeCommitted = true;
      return change;
    };
    return (await commitChange(main, apply, { signal })).version;
  } catch (error) {
    if (!mayBeCommitted || isLanceError(error, "ConcurrentModification"))
      await main.store.deleteAll([...names.values()].map(keyOf)).catch(() => {});
    throw error;
  }
}

/**
 * Refuses what a copy of the files of added columns would not be: the files of blobs, which no version lists, and files outside of the
 * branch.
 *
 * @throws LanceError Unsupported; DataLoss for names of files that lead out of the branch
 */
function refuseParts({ dataset, versions: { branch }, changes: { added } }: Compared): void {
  const isBlob = ({ fields }: Column) =>
    fields.some(
      ({ metadata }) => metadata[EXTENSION] !== undefined && textOf(metadata[EXTENSION]) === BLOB_TYPE,
    );
  const blobs = added.find(isBlob);
  if (blobs !== undefined) {
    const name = JSON.stringify(blobs.field.name);
    throw new LanceError("Unsupported", `column ${name} has blobs, which stay in the files of its branch`);
  }
  filesOf(dataset, branch);
  if (filesWith(branch, added).some(({ baseId }) => baseId !== undefined)) {
    throw new LanceError(
      "Unsupported",
      "the branch has new columns in the directory of another table or branch",
    );
  }
}

/** Returns the indices that only the branch has, and those that only the main branch has. */
async function indexChanges(
  main: ManifestFile,
  branch: ManifestFile,
): Promise<[BranchIndex[], BranchIndex[]]> {
  const [ours, theirs] = [await readIndices(main), await readIndices(branch)];
  const missingIn = (from: readonly ManifestIndex[], other: readonly ManifestIndex[]) =>
    from.filter(({ name }) => other.every((each) => each.name !== name)).map(toIndex);
  return [missingIn(theirs, ours), missingIn(ours, theirs)];
}

function toIndex({ name, columns, type }: ManifestIndex): BranchIndex {
  return create(BranchIndexSchema, {
    indexName: name,
    columns: [...columns],
    status: "ready",
    ...(type !== undefined && { indexType: type }),
  });
}

function toColumn({ field: { name, logicalType, nullable } }: Column): BranchColumn {
  return create(BranchColumnSchema, { name, dataType: logicalType, nullable });
}
