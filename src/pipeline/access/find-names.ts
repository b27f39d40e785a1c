/**
 * Creates the function that returns the place of a name in a sorted list, or -1. It is fastest where names come in the order of
 * the list: comparing two names takes a third of what a lookup in a map takes, which hashes each name.
 *
 * @param sorted names in the order of JavaScript's `<`
 */
export function createNameFinder(sorted: readonly string[]): (name: string) => number {
  /** The first place whose name is not less than the last one that was looked for. */
  let at = 0;

  /** Returns the first place whose name is not less than a name. */
  function search(name: string): number {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] as string) < name) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  const isBefore = (place: number, name: string) => place < sorted.length && (sorted[place] as string) < name;

  return (name) => {
    if (at > 0 && !isBefore(at - 1, name)) at = search(name);
    else if (isBefore(at, name)) at = isBefore(at + 1, name) ? search(name) : at + 1;
    return sorted[at] === name ? at : -1;
  };
}
