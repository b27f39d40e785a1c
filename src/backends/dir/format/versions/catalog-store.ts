import { randomUUID } from "node:crypto";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { putNewest } from "../../../../runtime/collections.ts";
import { manifestName, parseManifestName } from "../dataset.ts";
import type { ObjectEntry, ObjectStore } from "../storage.ts";
import type { CatalogVersion, StagedManifest, VersionCatalog } from "../version-catalog.ts";

/** A refusal of a catalog that proves that it has not committed a version, and does not in another attempt. */
export class RefusedCommit extends LanceError {}

/** Maximum number of manifests of which it is remembered that they have other keys than their versions. */
const MAX_MOVED = 1_000;

/**
 * Returns a store in which a catalog decides about the versions of a table, as the files in `_versions` do elsewhere: listings of this
 * directory have the catalog's versions and nothing else, the newest first; a put-if-absent of a manifest is a commit by the catalog; and
 * a deletion of one is the catalog's. All other objects are the storage's own.
 *
 * Manifests do not change, so a version is read by its number without the catalog, unless it has not moved the manifest to its name yet.
 */
export function withVersionCatalog(store: ObjectStore, catalog: VersionCatalog): ObjectStore {
  const versions: VersionCatalog = {
    ...catalog,
    async commit(branch, staged) {
      try {
        return await nameManifest(await catalog.commit(branch, staged), staged);
      } catch (error) {
        if (error instanceof RefusedCommit) {
          await store.delete(staged.key).catch(() => {});
          throw error;
        }
        // A conflict may be with this manifest, after an answer that was lost. A catalog that does not answer may still read it.
        const taken = await catalog.find(branch, staged.version).catch(() => undefined);
        if (taken?.key === staged.key) return nameManifest(taken, staged);
        if (taken !== undefined || !isLanceError(error, "ConcurrentModification")) throw error;
        throw unknownHolder(staged.version, error);
      }
    },
  };
  /**
   * Gives a committed manifest the name of its version, where the catalog has not done so. The catalog's own name remains. A manifest with this
   * name may be another table's, if the catalog gives a place to several.
   */
  async function nameManifest(committed: CatalogVersion, { key, version, scheme }: StagedManifest) {
    const name = `${key.slice(0, key.lastIndexOf("/"))}/${manifestName(version, scheme)}`;
    const isCopied = committed.key === key && (await copyUnlessThere(key, name).catch(() => false));
    const found = isCopied ? { ...committed, key: name } : committed;
    remember(name, found.key);
    return found;
  }
  /** Copies a manifest. @returns whether a manifest with equal bytes has the name */
  async function copyUnlessThere(key: string, name: string): Promise<boolean> {
    const bytes = await store.get(key);
    if (bytes === undefined) return false;
    if (await store.putIfAbsent(name, bytes)) return true;
    const other = await store.get(name);
    return other !== undefined && Buffer.compare(other, bytes) === 0;
  }
  /** Keys of the manifests that do not have the name of their version. */
  const moved = new Map<string, string>();

  /** Remembers the key of a manifest, if it is not the name of its version. */
  function remember(name: string, key: string): void {
    if (key === name) moved.delete(name);
    else putNewest(moved, name, key, MAX_MOVED);
  }
  /** Returns the branch of a `_versions` directory; undefined for any other directory. */
  function branchOf(directory: string): { readonly branch: string | undefined } | undefined {
    if (directory === `${versions.root}/_versions`) return { branch: undefined };
    const [start, end] = [`${versions.root}/tree/`, "/_versions"];
    if (!directory.startsWith(start) || !directory.endsWith(end)) return undefined;
    const branch = directory.slice(start.length, -end.length);
    return branch === "" ? undefined : { branch };
  }
  /** Returns the version whose manifest has a key; undefined for any other object. */
  function versionAt(key: string) {
    const at = key.lastIndexOf("/");
    const of = branchOf(key.slice(0, at));
    const name = of && parseManifestName(key.slice(at + 1));
    return of && name && { ...of, ...name };
  }
  /** Reads an object; the manifest of a version where the catalog has it. */
  async function reading<T>(key: string, read: (key: string) => Promise<T | undefined>) {
    const other = moved.get(key);
    const found = (other === undefined ? undefined : await read(other)) ?? (await read(key));
    if (found !== undefined) return found;
    const named = versionAt(key);
    if (named === undefined) return undefined;
    const version = await versions.find(named.branch, named.version);
    if (version === undefined || (version.key === key && other === undefined)) return undefined;
    remember(key, version.key);
    return read(version.key);
  }
  async function* listVersions(directory: string, branch: string | undefined) {
    for await (const page of versions.list(branch)) {
      yield page.map(({ version, key }): ObjectEntry => {
        const name = key.slice(key.lastIndexOf("/") + 1);
        const [stem = ""] = /^\d+\.manifest/.exec(name) ?? [];
        const own = parseManifestName(stem)?.version === version ? stem : manifestName(version, "V2");
        remember(`${directory}/${own}`, key);
        return { name: own };
      });
    }
  }
  async function remove(keys: readonly string[]): Promise<boolean> {
    const others: string[] = [];
    let isRemoved = false;
    for (const key of keys) {
      const named = versionAt(key);
      if (named === undefined) others.push(key);
      else isRemoved = (await versions.delete(named.branch, named.version)) || isRemoved;
    }
    if (others.length > 0) await store.deleteAll(others);
    return isRemoved;
  }
  return {
    ...store,
    versions,
    listsInOrder: true,
    get: (key) => reading(key, store.get),
    getTagged: (key) => reading(key, store.getTagged),
    getStream: (key) => reading(key, store.getStream),
    getTail: (key, length) => reading(key, (each) => store.getTail(each, length)),
    getRange: (key, start, end) => reading(key, (each) => store.getRange(each, start, end)),
    head: (key) => reading(key, store.head),
    list(directory, pageSize) {
      const of = branchOf(directory);
      return of === undefined ? store.list(directory, pageSize) : listVersions(directory, of.branch);
    },
    async putIfAbsent(key, bytes, after, onUnclear) {
      const named = versionAt(key);
      if (named === undefined) return store.putIfAbsent(key, bytes, after, onUnclear);
      const staged = `${key}-${randomUUID()}`;
      const { branch, version, scheme } = named;
      await Promise.all([store.put(staged, bytes), after]);
      try {
        await versions.commit(branch, { version, key: staged, size: bytes.byteLength, scheme });
        return true;
      } catch (error) {
        if (!isLanceError(error, "ConcurrentModification")) throw error;
        await store.delete(staged).catch(() => {});
        return false;
      }
    },
    delete: async (key) => (versionAt(key) === undefined ? store.delete(key) : remove([key])),
    deleteTagged: async (key, tag) =>
      versionAt(key) === undefined ? store.deleteTagged(key, tag) : remove([key]),
    async deleteAll(keys) {
      await remove(keys);
    },
  };
}

/** The staged manifest must remain, because it may be the one of the version. */
function unknownHolder(version: bigint, cause: unknown): LanceError {
  return new LanceError(
    "OutcomeUnknown",
    `the catalog has said that version ${version} is taken, but not by whom; look before you repeat it`,
    { cause },
  );
}
