import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import { type DatasetRef, parseManifestName, versionsDirectory } from "../../format/dataset.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { keyIn, listNames, listTree, type ObjectStore } from "../../format/storage.ts";
import { publishVersion } from "../../format/versions/publish-version.ts";
import { writeVersionHint } from "../../format/versions/version-hint.ts";

/**
 * Largest body that is written on the disk first, in bytes. The time of a larger one depends on its transfer, which the
 * engine begins at once.
 */
const MAX_BYTES = 1024 * 1024;

/** A file of a dataset, by its path below the dataset. */
interface DatasetFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** A dataset with a single version. */
interface FirstVersion {
  readonly version: bigint;
  readonly manifest: DatasetFile;
  readonly others: readonly DatasetFile[];
}

/**
 * Writes a new dataset to a bucket: the engine writes it on the local disk, where its steps need no answers of the
 * bucket, and the files go to the bucket together, followed by the manifest. Without the disk, and for a larger body,
 * the engine writes to the bucket itself, and waits for five answers in a row.
 *
 * @param file an Arrow IPC file
 * @returns the version
 * @throws LanceError ConcurrentModification if there is a dataset, and the errors of the engine and of the store
 */
export async function writeByDisk(
  { engine, store }: Pick<DataContext, "engine" | "store">,
  path: string,
  file: Buffer,
): Promise<number> {
  const direct = () => engine.create(path, file, "create");
  if (file.byteLength > MAX_BYTES) return direct();
  const first = await writeOnDisk((location) => engine.create(location, file, "create")).catch(
    () => undefined,
  );
  return first === undefined ? direct() : putFirst({ store, root: store.keyOf(path) }, first);
}

/** Lets the engine write a dataset into a directory of its own, and reads it. */
async function writeOnDisk(write: (location: string) => Promise<number>): Promise<FirstVersion> {
  const directory = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  try {
    const location = join(directory, "table.lance");
    const version = BigInt(await write(location));
    const disk = createLocalStore();
    const dataset = { store: disk, root: disk.keyOf(location) };
    const versions = await listNames(disk, versionsDirectory(dataset));
    const name = versions.find((each) => parseManifestName(each)?.version === version);
    const paths = (await listTree(disk, dataset.root)).filter((each) => !each.startsWith("_versions/"));
    const [manifest, ...others] = await Promise.all(
      [`_versions/${name}`, ...paths].map((each) => readFile(disk, dataset.root, each)),
    );
    return { version, manifest: manifest as DatasetFile, others };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function readFile(disk: ObjectStore, root: string, path: string): Promise<DatasetFile> {
  const bytes = await disk.get(keyIn(root, path));
  if (bytes === undefined) throw new Error(`the engine wrote no ${path}`);
  return { path, bytes };
}

/** Puts a dataset where there is none. Its files have names of their own, so a refusal removes them and nothing else. */
async function putFirst(dataset: DatasetRef, { version, manifest, others }: FirstVersion): Promise<number> {
  const { store, root } = dataset;
  const puts = others.map(({ path, bytes }) => store.create(keyIn(root, path), bytes));
  const written = Promise.all(puts);
  const { path, bytes } = manifest;
  try {
    if (!(await publishVersion(store, { key: keyIn(root, path), bytes }, written)))
      throw new LanceError("ConcurrentModification", "another table is at the location; try again");
  } catch (error) {
    if (isLanceError(error, "ConcurrentModification")) {
      await Promise.allSettled(puts);
      await Promise.allSettled(others.map((file) => store.delete(keyIn(root, file.path))));
    }
    throw error;
  }
  await writeVersionHint(dataset, version).catch(() => {});
  return Number(version);
}
