import { randomBytes } from "node:crypto";
import type { UploadPart } from "../../../arrow/upload.ts";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Layout } from "../catalog/layout.ts";
import { engineCall } from "../engine/errors.ts";
import { type Change, commitChange, commitFirst } from "../format/commit.ts";
import { type DatasetRef, dataDirectory } from "../format/layout.ts";
import type { ManifestFile } from "../format/manifest-file.ts";
import { appendRows, putStagingBase, replaceRows } from "../format/staged-rows.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
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

/** A staging directory, and the time of its id. */
const STAGED = /^\.staging-(?:upload-)?([0-9a-f]{12})[0-9a-f]{20}$/;

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
  const root = newStagingKey(layout);
  const path = store.uriOf(root);
  const staging: DatasetRef = { store, root };
  try {
    if (base !== undefined) await putStagingBase(staging, base);
    const rows = await writeParts();
    const staged = await readVersion(staging);
    const publish = (target: DatasetRef, commit: () => Promise<{ version: bigint }>) =>
      moveData(staging, target, async () => Number((await commit()).version));
    return await work({
      rows,
      create: (target) => publishFirst(staging, staged, target),
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
    await store.deleteDirectory(root);
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

/** The same for rows that are all here already, an Arrow IPC file. */
export async function withStagedFile<T>(
  context: DirContext,
  file: Buffer,
  work: (staged: Pick<StagedRows, "create">) => Promise<T>,
): Promise<T> {
  const { engine, store, layout } = context;
  const staging: DatasetRef = { store, root: newStagingKey(layout) };
  const path = store.uriOf(staging.root);
  try {
    await engine.create(path, file, "create");
    const staged = await readVersion(staging);
    return await work({ create: (target) => publishFirst(staging, staged, target) });
  } finally {
    engine.forget(path);
    await store.deleteDirectory(staging.root);
  }
}

/** Makes what is staged the first version of a dataset. @throws LanceError TableAlreadyExists */
function publishFirst(staging: DatasetRef, staged: ManifestFile, target: DatasetRef): Promise<number> {
  return moveData(staging, target, async () => {
    return Number((await commitFirst(target, staged, asFirst(staged.manifest))).version);
  });
}

/** The key of a directory for data that no table has yet; what is left there is removed after a day. */
export function newStagingKey({ baseKey }: Layout): string {
  return keyIn(baseKey, `${PREFIX}${newStagingId()}`);
}

/** An id of something staged, 32 hexadecimal digits; the first twelve are the time, which a sweep goes by. */
export function newStagingId(): string {
  return Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex");
}

/** When the staging of a directory of this name began, in milliseconds since 1970; undefined for other names. */
export function stagedAt(name: string): number | undefined {
  const [, begun] = STAGED.exec(name) ?? [];
  return begun === undefined ? undefined : Number.parseInt(begun, 16);
}

/** Removes what processes that came to a sudden end have left behind. */
export async function sweepStaging(store: ObjectStore, { baseKey }: Pick<Layout, "baseKey">): Promise<void> {
  const stale = Date.now() - STALE_AFTER;
  for (const name of await listNames(store, baseKey)) {
    const begun = stagedAt(name);
    if (begun === undefined || begun > stale) continue;
    const directory = keyIn(baseKey, name);
    const written = await Promise.all([
      lastWritten(store, directory),
      lastWritten(store, `${directory}/_versions`),
    ]);
    if (Math.max(...written) < stale) await store.deleteDirectory(directory);
  }
}

/** When an object directly in a directory was written last, in milliseconds since 1970; 0 if there is none. */
async function lastWritten(store: ObjectStore, directory: string): Promise<number> {
  let last = 0;
  for await (const page of store.list(directory)) {
    for (const { name, info, isDirectory } of page) {
      if (isDirectory) continue;
      const known = info ?? (await store.head(`${directory}/${name}`));
      last = Math.max(last, known?.modifiedMillis ?? 0);
    }
  }
  return last;
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
  const { store } = from;
  const [source, target] = [from, to].map((dataset) => `${dataDirectory(dataset)}/data`);
  const names = await listNames(store, source as string);
  const moveAll = (there: string, here: string) =>
    forEachOf(names, (name) => store.move(`${there}/${name}`, `${here}/${name}`));
  await moveAll(source as string, target as string);
  try {
    return await commit();
  } catch (error) {
    // Of other failures it is not known whether the version is there, and files too many do no harm.
    if (error instanceof LanceError && !isUnclear(error)) await moveAll(target as string, source as string);
    throw error;
  }
}

/** Whether a failure leaves open what has happened: the storage may have done what it did not acknowledge. */
function isUnclear(error: LanceError): boolean {
  return ["ServiceUnavailable", "Throttling", "Internal"].includes(error.entry.name);
}

/** How many files are moved at a time. */
const MOVES = 8;

async function forEachOf(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  const rest = names.values();
  const worker = async () => {
    for (const name of rest) await work(name);
  };
  await Promise.all(Array.from({ length: MOVES }, worker));
}
