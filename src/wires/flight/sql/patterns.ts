/**
 * Returns a test for names that fit a pattern of SQL: `%` is any text, `_` any character, and `\` takes the next character as it is. It goes back to
 * the last `%` alone, so that a pattern costs at most its length times that of the name.
 */
export function fitsPattern(pattern: string | undefined): (name: string) => boolean {
  if (pattern === undefined) return () => true;
  const parts = partsOf(pattern);
  return (name) => fits(parts, [...name]);
}

/** A character, or a wildcard. */
type Part = { readonly character: string } | "one" | "any";

function partsOf(pattern: string): Part[] {
  const parts: Part[] = [];
  let isEscaped = false;
  for (const character of pattern) {
    if (!isEscaped && character === "\\") isEscaped = true;
    else {
      parts.push(
        isEscaped ? { character } : character === "%" ? "any" : character === "_" ? "one" : { character },
      );
      isEscaped = false;
    }
  }
  return isEscaped ? [...parts, { character: "\\" }] : parts;
}

function fits(parts: readonly Part[], name: readonly string[]): boolean {
  let [at, next, lastAny, from] = [0, 0, -1, 0];
  while (at < name.length) {
    const part = parts[next];
    if (part === "any") {
      lastAny = next++;
      from = at;
    } else if (part === "one" || part?.character === name[at]) {
      next++;
      at++;
    } else if (lastAny >= 0) {
      next = lastAny + 1;
      at = ++from;
    } else return false;
  }
  return parts.slice(next).every((part) => part === "any");
}
