import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { checkDelimiter, type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { hasDotSegment } from "../../../namespace/operations/template.ts";
import { drawCharacters } from "../../../runtime/text.ts";
import type { Catalog, PageRequest } from "./catalog.ts";
import {
  foreign,
  isReachable,
  type ListedPage,
  type ListRequest,
  MAX_NAMES,
  MAX_PAGES,
  type Place,
  placesOf,
  readPages,
  tokenOf,
} from "./paging.ts";

/** Number of names that each page of a walk should have. A place counts on it, so it does not depend on the client's limit. */
const PAGE_SIZE = 1_000;

/** Errors of a namespace that the caller would not find in a listing either: it has just been dropped, or is another's. */
const PASSED: ReadonlySet<string> = new Set(["NamespaceNotFound", "PermissionDenied"]);

/** A point of a walk, with the table that is there, if any. */
interface Point {
  /**
   * For each namespace from the root downwards the place in its child namespaces, whose last name is where the walk is; at the end the place in
   * the tables of the namespace that it has reached.
   */
  readonly places: readonly Place[];
  readonly table?: Identifier;
}

/** The request of a walk. */
interface WalkRequest extends ListRequest {
  readonly delimiter?: string | undefined;
}

/**
 * Creates the listing of the tables of all namespaces: those of a namespace come before those of the namespaces in it, each listing in the
 * order of the catalog's pages. A page of it costs the catalog about {@link MAX_PAGES} requests at most, and is shorter than the limit if these do
 * not suffice.
 *
 * Identifiers that no path carries are left out, and so are namespaces that are denied to the caller.
 *
 * @param within namespace of the catalog that is the root
 */
export function createTableWalk(catalog: Catalog, within: Identifier) {
  const [least, most] = catalog.tableDepths;
  const isKept = (name: string) => catalog.refuseName?.(name) === undefined;

  return async (request: WalkRequest, call: Call): Promise<ListedPage> => {
    const { delimiter, limit = 0, pageToken } = request;
    if (delimiter !== undefined) checkDelimiter(delimiter);
    const start = placesOf(pageToken);
    if (!isReachable(start.slice(0, -1).map(({ after = "" }) => after))) throw foreign();
    const wanted = limit > 0 ? Math.min(limit, MAX_NAMES) : MAX_NAMES;
    const names = new Set<string>();
    let requests = 0;

    function pagesOf(kind: "listTables" | "listNamespaces", id: Identifier, place: Place) {
      const list = (page: PageRequest) => {
        requests += 1;
        return catalog[kind]([...within, ...id], page, call);
      };
      return readPages(list, place, () => PAGE_SIZE);
    }

    /** Walks through a namespace and those in it, from a point on. */
    async function* walk(
      id: Identifier,
      [first = {}, ...inner]: readonly Place[],
    ): AsyncGenerator<Point, void> {
      const depth = within.length + id.length;
      if (inner.length === 0 && depth >= least && depth <= most) yield* tablesOf(id, first);
      if (depth >= catalog.depths[1]) return;
      if (inner.length > 0) yield* child(id, first, inner);
      for await (const page of pagesOf("listNamespaces", id, inner.length > 0 ? first : {}))
        for (const after of page.names.filter(isKept))
          if (isReachable([...id, after])) yield* child(id, { token: page.token, after }, []);
    }

    async function* tablesOf(id: Identifier, first: Place): AsyncGenerator<Point, void> {
      yield { places: [first] };
      for await (const { token, names: found, next } of pagesOf("listTables", id, first)) {
        for (const name of found.filter(isKept)) {
          const table = [...id, name];
          if (isReachable(table)) yield { places: [{ token, after: name }], table };
        }
        yield { places: [next === undefined ? { token, after: found.at(-1) } : { token: next }] };
      }
    }

    /** Walks through the namespace at a place in those of another one. */
    async function* child(id: Identifier, at: Place, inner: readonly Place[]): AsyncGenerator<Point, void> {
      try {
        for await (const point of walk([...id, at.after ?? ""], inner))
          yield { ...point, places: [at, ...point.places] };
      } catch (error) {
        if (!(error instanceof LanceError) || !PASSED.has(error.kind)) throw error;
      }
    }

    for await (const { places, table } of walk([], start)) {
      if (table !== undefined) names.add(joinIdentifier(table, delimiter));
      if (names.size >= wanted || requests >= MAX_PAGES)
        return { names: [...names], pageToken: tokenOf(places) };
    }
    return { names: [...names], pageToken: undefined };
  };
}

/** Longest location, in characters. */
const MAX_LENGTH = 2_048;

const ABSOLUTE = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]*)?\/[^/]|^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+\/?$/;
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Returns what is wrong with a location; undefined for an absolute path or URI without dot segments, credentials and query. */
export function faultOf(location: string): string | undefined {
  if (location.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (CONTROL.test(location)) return "contains a control character";
  if (!ABSOLUTE.test(location)) return "is not an absolute path or a URI such as s3://bucket/prefix";
  if (location.includes("?") || location.includes("#")) return "has a query or a fragment";
  const path = location.replace(/^[a-z][a-z0-9+.-]*:\/\//, "");
  return hasDotSegment(path) ? "has a part of dots alone" : undefined;
}

/**
 * Checks the location that a client gives for a new entry.
 *
 * @throws LanceError InvalidInput
 */
export function checkLocation(location: string): void {
  const fault = faultOf(location);
  if (fault !== undefined)
    throw new LanceError("InvalidInput", `location ${JSON.stringify(location)} ${fault}`);
}

/** Number of random characters before the name of a table (docs/adr/0009). */
const RANDOM_CHARACTERS = 14;

/**
 * Draws a location for a table in a folder that no other table has or has had: a table that was renamed or deregistered keeps its
 * location, and an entry that pointed there by its name would show the rows of that table.
 */
export function drawLocation(folder: string, table: string): string {
  return below(folder, `${drawCharacters(RANDOM_CHARACTERS)}_${table}`);
}

/** Returns the location of a name in a folder. */
export function below(folder: string, ...names: readonly string[]): string {
  return [folder.replace(/\/+$/, ""), ...names].join("/");
}
