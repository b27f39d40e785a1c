/** Returns the word that differs least from another one; undefined if all differ much. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3));
  const [best] = known
    .map((each) => ({ each, distance: distanceOf(word, each) }))
    .sort((one, other) => one.distance - other.distance);
  return best === undefined || best.distance > most ? undefined : best.each;
}

/** Returns how many letters must be put in, left out, replaced or swapped with the next one (optimal string alignment). */
function distanceOf(one: string, other: string): number {
  let [beforeLast, last]: [number[], number[]] = [
    [],
    Array.from({ length: other.length + 1 }, (_, at) => at),
  ];
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length] as number;
}
