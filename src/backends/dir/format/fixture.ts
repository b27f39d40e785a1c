/* Fixtures of this folder's tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { DatasetRef } from "./dataset.ts";
import type { ObjectStore } from "./storage.ts";

/** Contents of a dataset as pylance reads them; see `read` in test/clients/python/format_peer.py. */
export interface Said {
  readonly version: number;
  readonly versions: readonly number[];
  readonly rows: number;
  readonly fragments: number;
  readonly config: Readonly<Record<string, string>>;
  readonly tableMetadata: Readonly<Record<string, string>>;
  readonly schemaMetadata: Readonly<Record<string, string>>;
  readonly fieldMetadata: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly tags: Readonly<Record<string, readonly [branch: string | null, version: number]>>;
  readonly branches: Readonly<
    Record<string, readonly [parent: string | null, version: number, createAt: number, size: number]>
  >;
  readonly transactions: Readonly<
    Record<string, { readonly uuid: string; readonly readVersion: number; readonly operation: string }>
  >;
}

interface Packed {
  readonly files: Readonly<Record<string, string>>;
  readonly said: Said;
  readonly branch?: Said;
}

/** Output of `format_peer.py pack` with pylance 14.0.2: all files except data, deletions and indices. */
const packed = JSON.parse(
  readFileSync(join(import.meta.dirname, "testdata", "pylance-14.json"), "utf8"),
) as Readonly<Record<"new" | "old" | "stable" | "v1file", Packed>>;

/** Returns the contents of a dataset as pylance reads them. */
export function saidOf(name: keyof typeof packed): Said {
  return packed[name].said;
}

/** Contents of the branch `feature/a` of the dataset `new` as pylance reads them. */
export const saidOfBranch = packed.new.branch as Said;

/** A store in memory; `objects` are its objects by key. */
export type MemoryStore = ObjectStore & { readonly objects: Map<string, Uint8Array> };

/**
 * Creates a store in memory.
 *
 * @param listsInOrder whether listings are sorted and come in pages of two, as in S3
 */
export function createMemoryStore(listsInOrder = false): MemoryStore {
  const objects = new Map<string, Uint8Array>();
  const infoOf = (key: string, { byteLength: size }: Uint8Array) => ({
    key,
    size,
    modifiedMillis: 0,
    eTag: "e",
  });
  /** Tags of the writes of all objects. */
  const tags = new Map<Uint8Array, string>();
  const tagOf = (bytes: Uint8Array) => tags.getOrInsertComputed(bytes, () => String(tags.size));
  return {
    objects,
    listsInOrder,
    uriOf: (key) => `memory://${key}`,
    keyOf: (uri) => uri.slice("memory://".length),
    get: async (key) => objects.get(key),
    async getTagged(key) {
      const bytes = objects.get(key);
      return bytes && { bytes, tag: tagOf(bytes) };
    },
    async getStream(key) {
      const bytes = objects.get(key);
      return bytes && Readable.from([bytes]);
    },
    exists: async (directory) => [...objects.keys()].some((key) => key.startsWith(`${directory}/`)),
    async putStream(key, bytes) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of bytes) chunks.push(chunk);
      objects.set(key, Buffer.concat(chunks));
    },
    async copy(from, to) {
      const bytes = objects.get(from);
      if (bytes !== undefined) objects.set(to, bytes);
      return bytes !== undefined;
    },
    async move(from, to) {
      objects.set(to, objects.get(from) as Uint8Array);
      objects.delete(from);
    },
    async deleteDirectory(directory, { isFormer, owns = () => true } = {}) {
      if (isFormer !== undefined && !(await isFormer())) return false;
      for (const key of objects.keys())
        if (key.startsWith(`${directory}/`) && owns(key.slice(directory.length + 1))) objects.delete(key);
      return true;
    },
    getTail: async (key, length) => {
      const bytes = objects.get(key);
      return (
        bytes && { size: bytes.byteLength, bytes: bytes.subarray(Math.max(0, bytes.byteLength - length)) }
      );
    },
    getRange: async (key, start, end) => objects.get(key)?.subarray(start, end),
    head: async (key) => {
      const bytes = objects.get(key);
      return bytes && infoOf(key, bytes);
    },
    async *list(directory) {
      const keys = [...objects.keys()].filter((key) => key.slice(0, key.lastIndexOf("/")) === directory);
      if (listsInOrder) keys.sort();
      for (let i = 0; i < keys.length; i += 2) {
        yield keys.slice(i, i + 2).map((key) => {
          const name = key.slice(directory.length + 1);
          return listsInOrder ? { name, info: infoOf(key, objects.get(key) as Uint8Array) } : { name };
        });
      }
    },
    create: async (key, bytes) => void objects.set(key, bytes),
    put: async (key, bytes) => void objects.set(key, bytes),
    putHint: async (key, bytes) => void objects.set(key, bytes),
    putIfAbsent: async (key, bytes, after) => {
      await after;
      if (objects.has(key)) return false;
      objects.set(key, bytes);
      return true;
    },
    async replace(key, bytes, tag) {
      const old = objects.get(key);
      if (old === undefined || tagOf(old) !== tag) return false;
      objects.set(key, bytes);
      return true;
    },
    delete: async (key) => objects.delete(key),
    async deleteTagged(key, tag) {
      const old = objects.get(key);
      return old !== undefined && tagOf(old) === tag && objects.delete(key);
    },
    async deleteAll(keys) {
      for (const key of keys) await this.delete(key);
    },
  };
}

/** Opens a dataset in memory that pylance created. */
export function openFixture(
  name: keyof typeof packed,
  listsInOrder = false,
): DatasetRef & { readonly store: MemoryStore } {
  const store = createMemoryStore(listsInOrder);
  for (const [path, data] of Object.entries(packed[name].files)) {
    store.objects.set(`base/t/${path}`, Buffer.from(data, "base64"));
  }
  return { store, root: "base/t" };
}
