import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { ObjectEntry, ObjectStore } from "../../src/backends/dir/format/storage.ts";
import type { Bucket } from "../../src/backends/dir/stores/bucket.ts";

/** Creates a bucket whose objects are files, so that the engine finds them, too. */
export function createDiskBucket(disk: ObjectStore = createLocalStore()): Bucket {
  const tagOf = (key: string) => disk.files?.fileStamp(key);
  return {
    scheme: "fake",
    name: "bucket",
    listsInOrder: false,
    get: disk.get,
    getTagged: disk.getTagged,
    getStream: disk.getStream,
    async getPart(key, range) {
      if ("length" in range) return disk.getTail(key, range.length);
      const bytes = await disk.getRange(key, range.start, range.end);
      return bytes && { size: (await disk.head(key))?.size ?? 0, bytes };
    },
    head: disk.head,
    async page({ prefix, recursive }) {
      const entries: (ObjectEntry & { readonly key: string })[] = [];
      const look = async (directory: string): Promise<void> => {
        for await (const page of disk.list(directory))
          for (const entry of page) {
            const key = directory === "" ? entry.name : `${directory}/${entry.name}`;
            if (entry.isDirectory && recursive) await look(key);
            else entries.push({ ...entry, key });
          }
      };
      await look(prefix.slice(0, -1));
      const infos = await Promise.all(
        entries.filter(({ isDirectory }) => !isDirectory).map(({ key }) => disk.head(key)),
      );
      return {
        objects: infos
          .filter((info) => info !== undefined)
          .map((info) => ({ ...info, tag: tagOf(info.key) })),
        prefixes: entries.filter(({ isDirectory }) => isDirectory).map(({ key }) => `${key}/`),
        next: undefined,
      };
    },
    put: disk.put,
    putStream: disk.putStream,
    create: async (key, bytes) => ((await disk.putIfAbsent(key, bytes)) ? "done" : "refused"),
    replace: async (key, bytes, tag) => ((await disk.replace(key, bytes, tag)) ? "done" : "refused"),
    copy: async (from, to) => disk.put(to, (await disk.get(from)) ?? new Uint8Array()),
    async delete(keys) {
      for (const key of keys) await disk.delete(key);
    },
    deleteTagged: async (key, tag) => ((await disk.deleteTagged(key, tag)) ? "done" : "refused"),
  };
}
