import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { UploadPart } from "../../../arrow/upload.ts";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Layout } from "../catalog/layout.ts";
import { engineCall } from "../engine/errors.ts";
import { type Change, commitChange, commitFirst } from "../format/commit.ts";
import { type DatasetRef, dataDirectory } from "../format/layout.ts";
import type { ManifestFile } from "../format/manifest-file.ts";
import { appendRows, putStagingBase, replaceRows } from "../format/staged-rows.ts";
import { readVersion } from "../format/versions.ts";
import type { DirContext } from "./context.ts";

/** Rows that the engine has written, and that no table has yet. */
export interface StagedRows {
  readonly rows: number;
  /** Makes them the first version of a dataset. @throws LanceError TableAlreadyExists */
  create(target: DatasetRef): Promise<number>;
  /** Puts them in place of all that a dataset has. */
  replace(target: DatasetRef): Promise<number>;
  /** Adds them to the dataset that they were staged for. @throws LanceError ConcurrentModification */
  append(target: DatasetRef): Promise<number>;
}

/** How rows are staged. */
export interface StageOptions {
  /** The version of the table that they are for; none for a new table. */
  readonly base?: ManifestFile | undefined;
  /** Whether the rows bring a schema of their own to the table. */
  readonly overwrite?: boolean;
  /** Called with the bytes of the body that are no longer held. */
  readonly onWritten: (bytes: number) => void;
}

const PREFIX = ".staging-";

/** Staging directories that are older are of processes that have ended, in milliseconds. */
const STALE_AFTER = 24 * 60 * 60 * 1000;

/**
 * Writes parts of an upload, one after the other, to a dataset of their own, and lets `work` make them a
 * table's. Whatever is not used by then is removed.
 *
 * Two parts are held at most: one that is written while the next one arrives.
 *
 * @throws LanceError for what the engine refuses; nothing has been committed then.
 */
export async function withStagedRows<T>(
  context: DirContext,
  first: UploadPart,
  rest: AsyncIterator<UploadPart, void>,
  { base, overwrite = false, onWritten }: StageOptions,
  work: (staged: StagedRows) => Promise<T>,
): Promise<T> {
  const { engine, store, layout } = context;
  const path = newStagingPath(layout);
  const staging: DatasetRef = { store, root: path.slice(1) };
  try {
    if (base !== undefined) await putStagingBase(staging, base);
    const rows = await writeParts();
    const staged = await readVersion(staging);
    const publish = (target: DatasetRef, commit: () => Promise<{ version: bigint }>) =>
      moveData(staging, target, async () => Number((await commit()).version));
    return await work({
      rows,
      create: (target) => publish(target, () => commitFirst(target, staged, asFirst(staged.manifest))),
      replace: (target) => publish(target, () => commitChange(target, replaceRows(staged.manifest))),
      append: (target) => {
        if (base === undefined) {
          throw new LanceError("ConcurrentModification", "the table got its first rows from another writer");
        }
        return publish(target, () => commitChange(target, appendRows(base.manifest, staged.manifest)));
      },
    });
  } finally {
    engine.forget(path);
    await rm(path, { recursive: true, force: true });
  }

  async function writeParts(): Promise<number> {
    let rows = 0;
    let next: Promise<IteratorResult<UploadPart, void>> = Promise.resolve({ value: first, done: false });
    for (let started = base !== undefined && !overwrite; ; started = true) {
      const { value: part, done } = await next;
      if (done) return rows;
      next = rest.next();
      // It is awaited behind the write, whose failure comes first.
      next.catch(() => {});
      await (started
        ? append(part)
        : engine.create(path, part.file, base === undefined ? "create" : "overwrite"));
      rows += part.rows;
      onWritten(part.bodyBytes);
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

/** A directory for data that no table has yet; what is left there is removed after a day. */
export function newStagingPath({ base }: Layout): string {
  return join(base, `${PREFIX}${randomBytes(8).toString("hex")}`);
}

/** Removes what processes that came to a sudden end have left behind. */
export async function sweepStaging(base: string): Promise<void> {
  for (const name of await readdir(base)) {
    if (!name.startsWith(PREFIX)) continue;
    const path = join(base, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > STALE_AFTER) await rm(path, { recursive: true, force: true });
  }
}

/** The first version is what the staging dataset is in the end. */
function asFirst(staged: Manifest): (manifest: Manifest) => Change {
  return (manifest) => {
    manifest.maxFragmentId = undefined;
    return replaceRows(staged)(manifest);
  };
}

/** Moves the data files of a dataset to another one and commits them there; they are removed if that fails. */
async function moveData(from: DatasetRef, to: DatasetRef, commit: () => Promise<number>): Promise<number> {
  const [source, target] = [from, to].map((dataset) => join("/", dataDirectory(dataset), "data"));
  const names = await readdir(source as string);
  await mkdir(dirname(join(target as string, "x")), { recursive: true });
  for (const name of names) await rename(join(source as string, name), join(target as string, name));
  try {
    return await commit();
  } catch (error) {
    // Of other failures it is not known whether the version is there, and files too many do no harm.
    if (error instanceof LanceError) {
      for (const name of names) await rename(join(target as string, name), join(source as string, name));
    }
    throw error;
  }
}
