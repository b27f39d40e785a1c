import type { JsonObject } from "@bufbuild/protobuf";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { damagedFile, parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import {
  createPlacedFiles,
  type GoneFile,
  type Homes,
  type OnDamaged,
  type Placed,
  READS,
  unlessDamaged,
} from "./placed-files.ts";

/** A secret that a function uses, and the variable of the environment in which it gets it. */
export interface StoredBinding {
  readonly variable: string;
  /** The secret, from the root downwards, its own name last. */
  readonly secret: Identifier;
}

/** Parts of a version of a function that decide its results. */
export interface FunctionDefinition {
  /** The source without its bytes. */
  readonly artifact: { readonly kind: string; readonly digest: string; readonly entrypoint: string };
  readonly signature: JsonObject;
  readonly runtime: JsonObject;
  readonly secretBindings: readonly StoredBinding[];
}

/** A version of a function. It never changes. */
export interface FunctionRecord extends FunctionDefinition, Placed {
  /** Tells the function from a later one of the same name. */
  readonly objectId: string;
  /** From 1. */
  readonly version: number;
  /** Digest of the definition. */
  readonly digest: string;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
}

/** The name of a function, and the object that has its versions. */
interface BoundName extends Placed {
  readonly objectId: string;
}

/**
 * Functions as objects in the storage of the catalog: names, which are bound to an object each; versions by the object and their number;
 * sources by their digests.
 */
export interface FunctionRecords {
  /** Returns the versions of all functions, in the order of their numbers. */
  list(): Promise<readonly FunctionRecord[]>;
  /** Returns the versions of the function of a name, in the order of their numbers. */
  versionsOf(id: Identifier): Promise<readonly FunctionRecord[]>;
  /** Returns a version of a function that has a name. */
  get(objectId: string, version: number): Promise<FunctionRecord | undefined>;
  /** Adds a version to the function of a name, which it makes if there is none. @throws LanceError NamespaceNotFound */
  publish(
    version: Omit<FunctionRecord, "home" | "objectId" | "version">,
    source: Uint8Array,
  ): Promise<FunctionRecord>;
  /** Removes the name, the versions and their sources; returns false for a missing name. */
  remove(id: Identifier): Promise<boolean>;
  /** Returns the bytes of a source. */
  sourceOf(digest: string): Promise<Uint8Array | undefined>;
  /**
   * Returns the names with a version, also those of namespaces that are gone. The name of a function is written before its first version; a
   * crash between the two leaves a name that no listing shows.
   */
  names(): Promise<readonly Placed[]>;
  /** Finds names whose namespace is gone, and versions without a name. */
  findGone(onDamaged: OnDamaged): Promise<readonly GoneFile[]>;
}

const VERSION_NAME = /^([0-9a-f-]{36})\.([1-9]\d{0,8})$/;

/** Opens the functions in a directory, given as an object key. It writes nothing before the first function. */
export function createFunctionRecords(store: ObjectStore, directory: string, homes: Homes): FunctionRecords {
  const [versions, sources] = ["versions", "sources"].map((part) => keyIn(directory, part)) as [
    string,
    string,
  ];
  const names = createPlacedFiles<BoundName>(store, keyIn(directory, "names"), homes);
  const versionKey = (objectId: string, version: number) => keyIn(versions, `${objectId}.${version}`);
  const sourceKey = (digest: string) => keyIn(sources, digest.replace(":", "-"));
  /** Versions never change. */
  const known = new Map<string, FunctionRecord>();

  async function readVersion(objectId: string, version: number): Promise<FunctionRecord | undefined> {
    const key = versionKey(objectId, version);
    const present = known.get(key);
    if (present !== undefined) return present;
    const bytes = await store.get(key);
    if (bytes === undefined) return undefined;
    const found = parseJsonFile(key, bytes) as unknown as FunctionRecord;
    if (found.objectId !== objectId || found.version !== version || found.artifact === undefined)
      throw damagedFile(key, "is of no version of a function");
    known.set(key, found);
    return found;
  }
  async function readAll(
    wanted: (objectId: string) => boolean,
    onDamaged?: OnDamaged,
  ): Promise<FunctionRecord[]> {
    const found: FunctionRecord[] = [];
    const present = await listNames(store, versions);
    await forEachOf(present, READS, async (name) => {
      const [, objectId = "", version] = VERSION_NAME.exec(name) ?? [];
      const read = () => readVersion(objectId, Number(version));
      const record = wanted(objectId)
        ? await unlessDamaged(keyIn(versions, name), read, onDamaged)
        : undefined;
      if (record !== undefined) found.push(record);
    });
    return found.sort((one, other) => one.version - other.version);
  }
  async function removeVersion({ objectId, version, artifact }: FunctionRecord): Promise<boolean> {
    const key = versionKey(objectId, version);
    const removed = await store.delete(key);
    known.delete(key);
    const isUsed = async () => {
      // A damaged version may have it.
      let mayBe = false;
      const present = await readAll(
        () => true,
        () => {
          mayBe = true;
        },
      );
      return mayBe || present.some((each) => each.artifact.digest === artifact.digest);
    };
    const place = sourceKey(artifact.digest);
    const source = (await isUsed()) ? undefined : await store.get(place);
    if (source === undefined) return removed;
    await store.delete(place);
    // A version that was published at the same time may have found it there.
    if (await isUsed()) await store.putIfAbsent(place, source);
    return removed;
  }

  const records: FunctionRecords = {
    async list() {
      const bound = new Set((await names.list()).map(({ objectId }) => objectId));
      return readAll((objectId) => bound.has(objectId));
    },
    async versionsOf(id) {
      const bound = await names.read(id);
      return bound === undefined ? [] : readAll((objectId) => objectId === bound.objectId);
    },
    async get(objectId, version) {
      if (!VERSION_NAME.test(`${objectId}.${version}`)) return undefined;
      const found = await readVersion(objectId, version);
      return found !== undefined && (await names.read(found.id))?.objectId === objectId ? found : undefined;
    },
    async publish(version, source) {
      const { id, artifact } = version;
      const namespace = id.slice(0, -1);
      const home = await homes.enter(namespace);
      await store.putIfAbsent(sourceKey(artifact.digest), source);
      await store.putIfAbsent(names.keyOf({ id, home }), encode({ id, home, objectId: crypto.randomUUID() }));
      const objectId = (await names.read(id))?.objectId ?? crypto.randomUUID();
      for (let number = ((await records.versionsOf(id)).at(-1)?.version ?? 0) + 1; ; number++) {
        const record = { ...version, home, objectId, version: number };
        if (!(await store.putIfAbsent(versionKey(objectId, number), encode(record)))) continue;
        // A removal at the same time may have taken the source for one that nothing has.
        await store.putIfAbsent(sourceKey(artifact.digest), source);
        await homes.confirm(namespace, home);
        return record;
      }
    },
    async remove(id) {
      const place = await names.placeOf(id);
      const own = await records.versionsOf(id);
      const removed = place !== undefined && (await store.delete(names.keyOf(place)));
      for (const each of own) await removeVersion(each);
      return removed && own.length > 0;
    },
    sourceOf: (digest) => store.get(sourceKey(digest)),
    async names() {
      const all = await names.all();
      const objects = (await listNames(store, versions)).map((name) => VERSION_NAME.exec(name)?.[1]);
      const present = new Set(objects);
      return all.filter(({ objectId }) => present.has(objectId));
    },
    async findGone(onDamaged) {
      // The name of a version is written before it, so a name that is missing after this listing was removed.
      const present = await readAll(() => true, onDamaged);
      // The versions of a damaged name are unknown, and then no version counts as left behind.
      let isWhole = true;
      const all = await names.all((key, error) => {
        isWhole = false;
        onDamaged(key, error);
      });
      const gone = new Set(await homes.gone(all));
      const left = new Set(all.filter((each) => !gone.has(each)).map(({ objectId }) => objectId));
      return [
        ...[...gone].map((place) => ({
          key: names.keyOf(place),
          remove: () => store.delete(names.keyOf(place)),
        })),
        ...present
          .filter(({ objectId }) => isWhole && !left.has(objectId))
          .map((each) => ({
            key: versionKey(each.objectId, each.version),
            remove: () => removeVersion(each),
          })),
      ];
    },
  };
  return records;
}

function encode(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
