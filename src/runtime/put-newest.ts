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
