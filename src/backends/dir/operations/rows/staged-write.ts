import type { UploadPart } from "../../../../arrow/upload/upload.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { isRefusal } from "../../batch/run.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { type ApplyChange, commitChange, commitFirst, prepareChange } from "../../format/changes/commit.ts";
import { appendRows, putStagingBase, replaceRows } from "../../format/changes/staged-rows.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { checkBasePaths } from "../../format/files/base-paths.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { isMissing } from "../../format/local/local-errors.ts";
import { listTree, type ObjectStore } from "../../format/storage.ts";
import { newStagingKey } from "../../format/table-files.ts";
import type { PreparedVersion } from "../../format/versions/publish-version.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";

/** Rows that the engine has written and that do not belong to a table yet. */
export interface StagedRows {
  readonly rows: number;
  /** Makes the rows the first version of a dataset. @throws LanceError TableAlreadyExists */
  create(target: DatasetRef): Promise<number>;
  /** Replaces all rows of a dataset; see {@link StagedRows.append}. @throws LanceError ConcurrentModification; the errors of `also` */
  replace(target: DatasetRef, also?: AlsoChange): Promise<number>;
  /**
   * Lets `work` make the rows the next version of a dataset, or its first, in place of all its rows. The rows remain
   * usable for that dataset after an attempt that certainly failed.
   *
   * @throws the errors of `work`
   */
  asNext(target: DatasetRef, work: (version: PreparedVersion) => Promise<number>): Promise<number>;
  /**
   * Appends the rows to the dataset for which they were staged.
   *
   * @param also changes the version in another way, too, or throws if the rows must not follow the one before
   * @throws LanceError ConcurrentModification; the errors of `also`
   */
  append(target: DatasetRef, also?: AlsoChange): Promise<number>;
}

/** Changes a copy of the newest manifest in place, which has the number of that version. */
export type AlsoChange = (manifest: Manifest) => void;

/** Options of staging. */
export interface StageOptions {
  /** The version of the table that gets the rows; absent for a new table. */
  readonly base?: ManifestFile | undefined;
  /** Whether the rows bring their own schema to the table. */
  readonly overwrite?: boolean;
  /** Receives the number of bytes of the body that are no longer held. */
  readonly onWritten: (bytes: number) => void;
}

/**
 * Writes parts of an upload, one after the other, to a dataset of their own, and lets `work` make them part of a table.
 * Staged files that `work` does not use are removed.
 *
 * Memory holds two parts at most: the server writes one while the next one arrives.
 *
 * @throws LanceError for rows that the engine refuses, before anything is committed
 */
export async function withStagedRows<T>(
  context: DataContext,
  table: FoundTable | undefined,
  first: UploadPart,
  rest: AsyncIterator<UploadPart, void>,
  { base, overwrite = false, onWritten }: StageOptions,
  work: (staged: StagedRows) => Promise<T>,
): Promise<T> {
  const { engine, store, tables } = context;
  const root = newStagingKey(tables.stagingBaseOf(table));
  const path = store.uriOf(root);
  const staging: DatasetRef = { store, root };
  try {
    if (base !== undefined) await putStagingBase(staging, base);
    const rows = await writeParts();
    const staged = await readStaged(staging, base);
    const publish = (target: DatasetRef, commit: () => Promise<{ version: bigint }>) =>
      moveData(staging, target, async () => Number((await commit()).version));
    return await work({
      rows,
      create: (target) => publishFirst(staging, staged, target),
      asNext: (target, publishNext) => publishAsNext(staging, staged, target, publishNext),
      replace: (target, also) =>
        publish(target, () => commitChange(target, both(also, replaceRows(staged.manifest)))),
      append: (target, also) => {
        if (base === undefined) {
          throw new LanceError("ConcurrentModification", "another writer added the table's first rows");
        }
        const add = appendRows(base.manifest, staged.manifest);
        return publish(target, () => commitChange(target, both(also, add)));
      },
    });
  } finally {
    engine.forget(path);
    await removeStaged(store, root);
  }

  async function writeParts(): Promise<number> {
    let rows = 0;
    let next: Promise<IteratorResult<UploadPart, void>> = Promise.resolve({ value: first, done: false });
    for (let started = base !== undefined && !overwrite; ; started = true) {
      const { value: part, done } = await next;
      if (done) return rows;
      next = rest.next();
      // It is awaited behind the write, whose failure is reported first.
      next.catch(() => {});
      await (started
        ? append(part)
        : engine.create(path, part.file, base === undefined ? "create" : "overwrite"));
      rows += part.rows;
      onWritten(part.heldBytes);
    }
  }
  async function append({ file }: UploadPart): Promise<void> {
    const lease = await engine.acquire(path);
    try {
      await engineCall(() => lease.table.add(file, "append"));
    } finally {
      lease.release();
    }
  }
}

function both(also: AlsoChange | undefined, apply: ApplyChange): ApplyChange {
  return (manifest) => {
    also?.(manifest);
    return apply(manifest);
  };
}

/** Stages the rows of a complete Arrow IPC file; see {@link withStagedRows}. */
export async function withStagedFile<T>(
  context: DataContext,
  table: FoundTable | undefined,
  file: Buffer,
  work: (staged: Pick<StagedRows, "create" | "asNext">) => Promise<T>,
): Promise<T> {
  const { engine, store, tables } = context;
  const staging: DatasetRef = { store, root: newStagingKey(tables.stagingBaseOf(table)) };
  const path = store.uriOf(staging.root);
  try {
    await engine.create(path, file, "create");
    const staged = await readStaged(staging);
    return await work({
      create: (target) => publishFirst(staging, staged, target),
      asNext: (target, publishNext) => publishAsNext(staging, staged, target, publishNext),
    });
  } finally {
    engine.forget(path);
    await removeStaged(store, staging.root);
  }
}

/** Removes staged rows, whose outcome is known already. A sweep removes what is left. */
export async function removeStaged(store: ObjectStore, root: string): Promise<void> {
  await store.deleteDirectory(root).catch(() => {});
}

/** Implements {@link StagedRows.asNext}. */
function publishAsNext(
  staging: DatasetRef,
  staged: ManifestFile,
  target: DatasetRef,
  work: (version: PreparedVersion) => Promise<number>,
): Promise<number> {
  let isPublished = false;
  const onPublished = () => {
    isPublished = true;
  };
  const commit = async () => {
    const isFirst = (await latestVersion(target)) === undefined;
    const apply = isFirst ? asFirst(staged.manifest) : replaceRows(staged.manifest);
    return work({ ...(await prepareChange(target, staged, apply)), onPublished });
  };
  return moveData(staging, target, commit, () => isPublished);
}

/** Makes a staged dataset the first version of another one. @throws LanceError TableAlreadyExists */
export async function publishStaged(staging: DatasetRef, target: DatasetRef): Promise<number> {
  return publishFirst(staging, await readStaged(staging), target);
}

/**
 * Reads the final state of staged rows. A client with write access to the files of the table may have changed it, where
 * the rows are staged among them.
 *
 * @throws LanceError PermissionDenied if it names directories of others
 */
async function readStaged(staging: DatasetRef, base?: ManifestFile): Promise<ManifestFile> {
  const staged = await readVersion(staging);
  await checkBasePaths(staging, staged.manifest, async () => base?.manifest);
  return staged;
}

/** Makes staged rows the first version of a dataset. @throws LanceError TableAlreadyExists */
function publishFirst(staging: DatasetRef, staged: ManifestFile, target: DatasetRef): Promise<number> {
  return moveData(staging, target, async () => {
    return Number((await commitFirst(target, staged, asFirst(staged.manifest))).version);
  });
}

/** Turns the final state of the staging dataset into a first version. */
function asFirst(staged: Manifest): ApplyChange {
  return (manifest) => {
    manifest.maxFragmentId = undefined;
    manifest.fragments = [];
    return replaceRows(staged)(manifest);
  };
}

/**
 * Moves the data files of a dataset to another one and commits them there; moves them back when that fails.
 *
 * @param isPublished whether readers have seen a version with the files. Others may have built on it before it was taken back, so
 *   that they need the files. Default: a commit that fails has shown none
 */
async function moveData(
  from: DatasetRef,
  to: DatasetRef,
  commit: () => Promise<number>,
  isPublished = () => false,
): Promise<number> {
  const { store } = from;
  const [source, target] = [from, to].map((dataset) => `${dataDirectory(dataset)}/data`);
  const names = await listTree(store, source as string);
  const moveAll = (there: string, here: string) =>
    forEachOf(names, MOVES, (name) => store.move(`${there}/${name}`, `${here}/${name}`));
  await moveAll(source as string, target as string);
  try {
    return await commit();
  } catch (error) {
    // After an unclear failure the version may exist; the files stay, and superfluous ones do no harm.
    if (isRefusal(error) && !isPublished()) {
      await moveAll(target as string, source as string).catch((failure: unknown) => {
        throw isMissing(failure) ? droppedMeanwhile(failure) : failure;
      });
    }
    throw error;
  }
}

/** Creates the error for a table whose directory has gone with what was written to it. */
export function droppedMeanwhile(cause?: unknown): LanceError {
  return new LanceError("ConcurrentModification", "the table was dropped while it was written", { cause });
}

/** Number of files that are moved at a time. */
const MOVES = 8;
