/** Versions of tables that running calls of this thread read by their numbers. */
export interface ReadVersions {
  /** Notes that a version is about to be read; the returned function ends that. */
  begin(location: string, version: number): () => void;
  has(location: string, version: number): boolean;
}

/** Creates an empty record. */
export function createReadVersions(): ReadVersions {
  const readers = new Map<string, number>();
  const keyOf = (location: string, version: number) => `${version} ${location}`;

  return {
    begin(location, version) {
      const key = keyOf(location, version);
      readers.set(key, (readers.get(key) ?? 0) + 1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        const left = (readers.get(key) as number) - 1;
        if (left === 0) readers.delete(key);
        else readers.set(key, left);
      };
    },
    has: (location, version) => readers.has(keyOf(location, version)),
  };
}
