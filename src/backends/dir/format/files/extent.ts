import { keyIn, type ObjectStore } from "../storage.ts";

/** Size and age of everything below a directory. */
export interface Extent {
  readonly files: number;
  readonly bytes: number;
  /**
   * Time of the last write below it, in milliseconds since 1970 by the storage's clock; undefined for an empty
   * directory of an object store. On a disk, added and removed names count, too: a file that is being written may not
   * have a name yet.
   */
  readonly modifiedMillis: number | undefined;
}

/** Measures a directory. */
export async function measure(store: ObjectStore, directory: string): Promise<Extent> {
  let [files, bytes, modifiedMillis] = [0, 0, undefined as number | undefined];
  const note = (millis: number) => {
    modifiedMillis = Math.max(modifiedMillis ?? 0, millis);
  };
  const directories = [directory];
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    const stamp = store.files?.directoryStamp(next);
    if (stamp !== undefined) note(Number(stamp.modifiedNs / 1_000_000n));
    for await (const page of store.list(next)) {
      for (const { name, isDirectory, info } of page) {
        const key = keyIn(next, name);
        if (isDirectory) directories.push(key);
        const found = isDirectory ? undefined : (info ?? (await store.head(key)));
        if (found === undefined) continue;
        files++;
        bytes += found.size;
        note(found.modifiedMillis);
      }
    }
  }
  return { files, bytes, modifiedMillis };
}
