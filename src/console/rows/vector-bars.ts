/** Most bars that a vector is drawn with. */
const MOST_BARS = 24;

/**
 * Returns the heights of the bars that draw a vector, from -1 to 1: the largest value has the full height. Vectors with
 * more numbers than bars have the mean of neighbours.
 */
export function barsOf(values: ArrayLike<number>): number[] {
  const count = Math.min(values.length, MOST_BARS);
  const means = Array.from({ length: count }, (_, bar) => {
    const [start, end] = [bar, bar + 1].map((edge) => Math.floor((edge * values.length) / count));
    let sum = 0;
    for (let at = start as number; at < (end as number); at++) sum += values[at] as number;
    return sum / ((end as number) - (start as number));
  });
  const largest = Math.max(...means.map(Math.abs));
  return means.map((mean) => (Number.isFinite(mean / largest) ? mean / largest : 0));
}
