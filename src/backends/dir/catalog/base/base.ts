import { constants } from "node:fs";
import { access, readdir, realpath } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { isLanceError } from "../../../../namespace/errors.ts";
import { RefusedRequest } from "../../format/decisive-request.ts";
import { type FileFeatures, keyIn, type ObjectStore } from "../../format/storage.ts";
import { probeKey } from "../../format/storage-clock.ts";
import type { OpenedStore } from "../../stores/open-store.ts";
import { MANIFEST_NAME } from "../manifest/manifest-table.ts";
import { isInside } from "./location-names.ts";

/** Directory in which new catalogs keep their manifest and their tables. */
const DATA_DIRECTORY = "data";

/** Directory that every table has and no catalog. */
const VERSIONS_DIRECTORY = "_versions";

const CHOSEN = "it was opened for reading only";

const IS_TABLE = "it is a single table; give the directory that contains it";

/** The base directory of a catalog. */
export interface Base {
  readonly key: string;
  /** Reason why nothing can be written; undefined if the base is writable. */
  readonly readOnly: string | undefined;
}

/**
 * Finds the base directory of a catalog, and creates it on a disk.
 *
 * The base is `<root>/data`, or the root if it already is a Lance catalog and there is none in `<root>/data`; `tableDirectory` names another directory
 * below the root, or `.` for the root itself. On a disk the result is the real path, without symbolic links.
 *
 * @param onlyReads whether nothing may be written, directories and tests of the storage included
 * @throws Error with a single line, if the root cannot be used.
 */
export async function openBase(
  opened: OpenedStore,
  tableDirectory: string | undefined,
  onlyReads = false,
): Promise<Base> {
  const { store, root } = opened;
  try {
    if (store.files !== undefined) {
      return await openDirectory(store, store.files, root, tableDirectory, onlyReads);
    }
    const directory = tableDirectory ?? ((await isServedInPlace(store, root)) ? "." : DATA_DIRECTORY);
    const base = resolve("/", root, directory);
    if (!isInside(resolve("/", root), base)) throw new Error("the table directory is outside of it");
    const key = base.slice(1);
    await refuseTable(store, key, directory);
    return { key, readOnly: onlyReads ? CHOSEN : await probe(store, key) };
  } catch (error) {
    const place = store.files === undefined ? store.uriOf(root) : root;
    throw new Error(`cannot use ${place} as the directory of a catalog: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/** Meanings of failures of the disk for a root, by their codes. */
const REASONS: ReadonlyMap<unknown, string> = new Map([
  ["ENOTDIR", "a file is at this path, or on the way to it, where a directory belongs (ENOTDIR)"],
  ["EACCES", "this process may not read it; change its owner or its permissions (EACCES)"],
  ["ENOENT", "it does not exist, and cannot be created there (ENOENT)"],
]);

function reasonOf(error: unknown): string {
  const { code, message = String(error) } = error as NodeJS.ErrnoException;
  return REASONS.get(code) ?? message;
}

async function openDirectory(
  store: ObjectStore,
  files: FileFeatures,
  root: string,
  tableDirectory: string | undefined,
  onlyReads: boolean,
): Promise<Base> {
  const makeDirectory = async (path: string) =>
    !onlyReads && (await files.makeDirectory(store.keyOf(path)).then(() => true, isDenied));
  await makeDirectory(resolve(root));
  const names = await readdir(root);
  const holdsCatalog = names.some((name) => name === MANIFEST_NAME || name.endsWith(".lance"));
  const hasOwn = await hasOwnCatalog(store, store.keyOf(resolve(root)));
  if (tableDirectory === undefined && !hasOwn && !holdsCatalog && names.includes(VERSIONS_DIRECTORY))
    throw new Error(IS_TABLE);
  const base = resolve(root, tableDirectory ?? (holdsCatalog && !hasOwn ? "." : DATA_DIRECTORY));
  if (!isInside(resolve(root), base)) throw new Error("the table directory is outside of it");
  await refuseTable(store, store.keyOf(base), relative(resolve(root), base));
  const made = await makeDirectory(base);
  const path = made ? await realpath(base) : join(await realpath(root), relative(resolve(root), base));
  const writable = made && (await access(path, constants.W_OK).then(() => true, isDenied));
  const reason = onlyReads ? CHOSEN : "its directory cannot be written";
  return { key: store.keyOf(path), readOnly: writable ? undefined : reason };
}

/** @returns false for a failure that proves that nothing can be written, and throws any other */
function isDenied(thrown: Error): false {
  const { code } = (thrown.cause ?? thrown) as NodeJS.ErrnoException;
  if (["EROFS", "EACCES", "EPERM", "ENOENT"].includes(code ?? "")) return false;
  throw thrown.cause ?? thrown;
}

/**
 * Whether gateways have a catalog in the data directory. It stays the one that is served when another program, which was pointed at
 * the root by mistake, puts tables there.
 */
function hasOwnCatalog(store: ObjectStore, root: string): Promise<boolean> {
  return store.exists(keyIn(root, `${DATA_DIRECTORY}/${MANIFEST_NAME}`));
}

/**
 * Whether the root itself is the base.
 *
 * @throws Error if the root is a table: a prune of the table would remove the rows of a catalog in its directory `data`
 */
async function isServedInPlace(store: ObjectStore, root: string): Promise<boolean> {
  if (await hasOwnCatalog(store, root)) return false;
  if (await isCatalog(store, root)) return true;
  if (await store.exists(keyIn(root, VERSIONS_DIRECTORY))) throw new Error(IS_TABLE);
  return false;
}

/**
 * Refuses a base that is a table, such as a dataset in the directory `data`: a catalog would be among its files.
 *
 * @param name path of the base from the root
 * @throws Error
 */
async function refuseTable(store: ObjectStore, base: string, name: string): Promise<void> {
  if (!(await store.exists(keyIn(base, VERSIONS_DIRECTORY))) || (await isCatalog(store, base))) return;
  throw new Error(
    name === "" || name === "."
      ? IS_TABLE
      : `its directory ${name} is a single table; choose another table directory`,
  );
}

async function isCatalog(store: ObjectStore, root: string): Promise<boolean> {
  if (await store.exists(keyIn(root, MANIFEST_NAME))) return true;
  for await (const page of store.list(root))
    if (page.some(({ name, isDirectory }) => isDirectory && name.endsWith(".lance"))) return true;
  return false;
}

/**
 * Tests whether a store refuses to replace an existing object: every commit depends on it.
 *
 * @returns why the store cannot be written; undefined if it can
 * @throws LanceError if it does not answer, or cannot even be read
 */
async function probe(store: ObjectStore, base: string): Promise<string | undefined> {
  const key = probeKey(base);
  await store.exists(base);
  const [first, second] = [Buffer.from("first"), Buffer.from("second")];
  try {
    if (!(await store.putIfAbsent(key, first))) return "its storage refuses conditional writes";
  } catch (failure) {
    if (isPassing(failure)) await tryPlainWrite(store, key);
    return "its storage refuses conditional writes, or any";
  }
  try {
    const replaced = await store.putIfAbsent(key, second);
    return replaced ? "its storage has no conditional writes" : undefined;
  } finally {
    await store.delete(key);
  }
}

/** Whether a storage that fails in this way may work later; one that denies the write does not. */
function isPassing(failure: unknown): boolean {
  if (isLanceError(failure, "Throttling")) return true;
  return isLanceError(failure, "ServiceUnavailable") && !(failure instanceof RefusedRequest);
}

/**
 * Writes without a condition. A service that has no conditional writes may answer them as one that fails does, and only this write tells
 * which it is: a gateway that took a storage for read-only would refuse all changes until it is started again.
 */
async function tryPlainWrite(store: ObjectStore, key: string): Promise<void> {
  await store.put(key, Buffer.from("plain"));
  await store.delete(key);
}
