/** Returns the first text of a list that an earlier one equals; undefined if all are different. */
export function firstRepeated(texts: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return texts.find((text) => seen.size === seen.add(text).size);
}
