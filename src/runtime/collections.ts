/**
 * Puts an entry behind all others of a map, and takes the first one out if there are more than a number: the one that was put the longest ago.
 *
 * @returns the value that was taken out; undefined if there is room
 */
export function putNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): V | undefined {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return undefined;
  const [first] = map as Iterable<[K, V]>;
  const [oldest, removed] = first as [K, V];
  map.delete(oldest);
  return removed;
}

/** Returns the first text of a list that an earlier one equals; undefined if all are different. */
export function firstRepeated(texts: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return texts.find((text) => seen.size === seen.add(text).size);
}

/** Entries that wait, among which callers take turns; those of each are in order of arrival. */
export interface CallerQueue<T> {
  readonly size: number;
  /** The next entry; undefined if none waits. */
  readonly first: T | undefined;
  push(entry: T, caller: string): void;
  /**
   * Removes the next entry; its caller comes after all others then.
   *
   * @param isFree whether a caller may have the next entry. Default: every one may.
   */
  shift(isFree?: (caller: string) => boolean): T | undefined;
  /** Removes an entry that no longer waits. */
  remove(entry: T, caller: string): void;
  /** Returns the newest entry of the caller that has the most; undefined unless it has more than a caller would have with its next. */
  newestBeside(caller: string): T | undefined;
}

/** Creates an empty queue. */
export function createCallerQueue<T>(): CallerQueue<T> {
  /** The first caller is next, and goes to the end with what it still has. */
  const waiting = new Map<string, T[]>();
  let size = 0;

  function next(): [caller: string, own: T[]] | undefined {
    const [first] = waiting;
    return first;
  }

  return {
    get size() {
      return size;
    },
    get first() {
      return next()?.[1][0];
    },
    push(entry, caller) {
      size += 1;
      const own = waiting.get(caller);
      if (own === undefined) waiting.set(caller, [entry]);
      else own.push(entry);
    },
    shift(isFree) {
      const found = isFree === undefined ? next() : [...waiting].find(([caller]) => isFree(caller));
      if (found === undefined) return undefined;
      const [caller, own] = found;
      size -= 1;
      waiting.delete(caller);
      const entry = own.shift();
      if (own.length > 0) waiting.set(caller, own);
      return entry;
    },
    remove(entry, caller) {
      const own = waiting.get(caller) ?? [];
      const at = own.indexOf(entry);
      if (at < 0) return;
      size -= 1;
      own.splice(at, 1);
      if (own.length === 0) waiting.delete(caller);
    },
    newestBeside(caller) {
      let most: readonly T[] = [];
      for (const own of waiting.values()) if (own.length > most.length) most = own;
      return most.length > (waiting.get(caller)?.length ?? 0) + 1 ? most.at(-1) : undefined;
    },
  };
}
