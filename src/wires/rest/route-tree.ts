/** A place in the tree: what ends here, and what follows. */
interface Place<T> {
  readonly literals: Map<string, Place<T>>;
  variable: Place<T> | undefined;
  value: T | undefined;
}

/** Paths with variables, each of which is a whole segment. */
export interface RouteTree<T> {
  /**
   * Returns the value of a path.
   *
   * @param segments of the path; the first one is empty.
   * @returns undefined for a path that is not in the tree or has an empty segment, and for one that a search with several tries
   *   might still find.
   */
  find(segments: readonly string[]): T | undefined;
}

/**
 * Builds the tree.
 *
 * @param entries paths in the notation of Fastify, for example `/v1/table/:identifier/describe`, and their values.
 */
export function createRouteTree<T>(entries: Iterable<readonly [path: string, value: T]>): RouteTree<T> {
  const root = createPlace<T>();
  for (const [path, value] of entries) {
    let place = root;
    for (const segment of path.split("/").slice(1)) place = placeBelow(place, segment);
    place.value = value;
  }
  return {
    find(segments) {
      let place: Place<T> | undefined = root;
      for (let index = 1; index < segments.length && place !== undefined; index += 1) {
        const segment = segments[index] as string;
        if (segment === "") return undefined;
        place = place.literals.get(segment) ?? place.variable;
      }
      return place?.value;
    },
  };
}

function createPlace<T>(): Place<T> {
  return { literals: new Map(), variable: undefined, value: undefined };
}

function placeBelow<T>(place: Place<T>, segment: string): Place<T> {
  if (segment.startsWith(":")) {
    place.variable ??= createPlace();
    return place.variable;
  }
  const known = place.literals.get(segment) ?? createPlace<T>();
  place.literals.set(segment, known);
  return known;
}
