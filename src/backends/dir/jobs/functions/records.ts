import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";

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
export interface FunctionRecord extends FunctionDefinition {
  /** The function, from the root downwards, its own name last. */
  readonly id: Identifier;
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
interface BoundName {
  readonly id: Identifier;
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
  /** Adds a version to the function of a name, which it makes if there is none. */
  publish(version: Omit<FunctionRecord, "objectId" | "version">, source: Uint8Array): Promise<FunctionRecord>;
  /** Removes the name, the versions and their sources; returns false for a missing name. */
  remove(id: Identifier): Promise<boolean>;
  /** Returns the bytes of a source. */
  sourceOf(digest: string): Promise<Uint8Array | undefined>;
}

/** Number of records that are read at a time. */
const READS = 16;

const VERSION_NAME = /^([0-9a-f-]{36})\.([1-9]\d{0,8})$/;

/** Opens the functions in a directory, given as an object key. It writes nothing before the first function. */
export function createFunctionRecords(store: ObjectStore, directory: string): FunctionRecords {
  const [names, versions, sources] = ["names", "versions", "sources"].map((part) =>
    keyIn(directory, part),
  ) as [string, string, string];
  const nameKey = (id: Identifier) => keyIn(names, keyOfName(id));
  const versionKey = (objectId: string, version: number) => keyIn(versions, `${objectId}.${version}`);
  const sourceKey = (digest: string) => keyIn(sources, digest.replace(":", "-"));
  /** Versions never change. */
  const known = new Map<string, FunctionRecord>();

  async function read<T>(key: string): Promise<T | undefined> {
    const bytes = await store.get(key);
    return bytes && (parseJsonFile(key, bytes) as T);
  }
  async function readVersion(objectId: string, version: number): Promise<FunctionRecord | undefined> {
    const key = versionKey(objectId, version);
    const found = known.get(key) ?? (await read<FunctionRecord>(key));
    if (found !== undefined) known.set(key, found);
    return found;
  }
  async function readAll(wanted: (objectId: string) => boolean): Promise<FunctionRecord[]> {
    const found: FunctionRecord[] = [];
    const present = await listNames(store, versions);
    await forEachOf(present, READS, async (name) => {
      const [, objectId = "", version] = VERSION_NAME.exec(name) ?? [];
      const record = wanted(objectId) ? await readVersion(objectId, Number(version)) : undefined;
      if (record !== undefined) found.push(record);
    });
    return found.sort((one, other) => one.version - other.version);
  }
  const boundTo = (id: Identifier) => read<BoundName>(nameKey(id));

  const records: FunctionRecords = {
    async list() {
      const bound = new Set<string>();
      await forEachOf(await listNames(store, names), READS, async (name) => {
        const found = await read<BoundName>(keyIn(names, name));
        if (found !== undefined) bound.add(found.objectId);
      });
      return readAll((objectId) => bound.has(objectId));
    },
    async versionsOf(id) {
      const bound = await boundTo(id);
      return bound === undefined ? [] : readAll((objectId) => objectId === bound.objectId);
    },
    async get(objectId, version) {
      if (!VERSION_NAME.test(`${objectId}.${version}`)) return undefined;
      const found = await readVersion(objectId, version);
      return found !== undefined && (await boundTo(found.id))?.objectId === objectId ? found : undefined;
    },
    async publish(version, source) {
      const { id, artifact } = version;
      await store.putIfAbsent(sourceKey(artifact.digest), source);
      await store.putIfAbsent(nameKey(id), encode({ id, objectId: crypto.randomUUID() }));
      const objectId = (await boundTo(id))?.objectId ?? crypto.randomUUID();
      for (let number = ((await records.versionsOf(id)).at(-1)?.version ?? 0) + 1; ; number++) {
        const record = { ...version, objectId, version: number };
        if (!(await store.putIfAbsent(versionKey(objectId, number), encode(record)))) continue;
        // A removal at the same time may have taken the source for one that nothing has.
        await store.putIfAbsent(sourceKey(artifact.digest), source);
        return record;
      }
    },
    async remove(id) {
      const own = await records.versionsOf(id);
      const removed = await store.delete(nameKey(id));
      for (const { objectId, version } of own) {
        await store.delete(versionKey(objectId, version));
        known.delete(versionKey(objectId, version));
      }
      const used = new Set((await readAll(() => true)).map(({ artifact }) => artifact.digest));
      for (const { artifact } of own)
        if (!used.has(artifact.digest)) await store.delete(sourceKey(artifact.digest));
      return removed && own.length > 0;
    },
    sourceOf: (digest) => store.get(sourceKey(digest)),
  };
  return records;
}

/** Returns the name of the object of a name in the catalog, which any storage takes. */
export function keyOfName(id: Identifier): string {
  return createHash("sha256").update(JSON.stringify(id)).digest("hex");
}

function encode(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
