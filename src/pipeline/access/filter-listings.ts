import { clone, type Message } from "@bufbuild/protobuf";
import type { JobSummary } from "../../gen/lance/gateway/v1/job_pb.ts";
import type { Siblings } from "../../namespace/authorizer.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import {
  DEFAULT_DELIMITER,
  type Identifier,
  joinIdentifier,
  parseIdentifier,
} from "../../namespace/identifier.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import { checkProgress } from "../../namespace/page-progress.ts";
import type { Databases } from "../call/databases.ts";
import {
  type Interceptor,
  type Next,
  type OperationName,
  type OperationRequest,
  onlyFor,
} from "../call/interceptor.ts";
import { fullPage, type Page, type Source } from "./full-page.ts";
import type { Permissions } from "./permissions.ts";
import type { TokenSeal } from "./token-seal.ts";

/**
 * Removes from listings what the caller may not see. Pages stay full, and their tokens come after an entry that the
 * caller sees.
 */
export function filterListings(permissions: Permissions, databases: Databases, seal: TokenSeal): Interceptor {
  /** Decides about all objects of a namespace at once; undefined if each has to be asked about. */
  function siblingsOf(call: Call, { children }: Listing): Siblings | undefined {
    if (children === undefined || isRoot(call)) return undefined;
    return permissions.allowSiblings(call, children.operation, children.kind);
  }

  const isRoot = (call: Call) => permissions.databaseOf(call) === "";

  /** Returns for each entry whether the caller of a call may see it. */
  async function visibleIn(
    entries: readonly never[],
    call: Call,
    { needs }: Listing,
    siblings: Siblings | undefined,
  ): Promise<boolean[]> {
    const { visible, asked } =
      siblings === undefined ? undecided(entries.length) : decided(entries, siblings);
    if (asked.length === 0) return visible;
    const touches = asked.map(({ at }) => needs(entries[at] as never, call, isRoot(call)));
    const named = touches.filter((touch) => touch !== undefined);
    const decisions = (await permissions.allowEach(call, named)).values();
    for (const [i, { at, exception }] of asked.entries()) {
      const answer = touches[i] !== undefined && decisions.next().value === true;
      visible[at] = answer;
      if (exception !== undefined && siblings !== undefined) siblings.known[exception] = answer;
    }
    return visible;
  }

  async function list(call: Call, request: OperationRequest, next: Next, listing: Listing) {
    call.takes = undefined;
    const asked = request.message as ListRequest;
    const siblings = siblingsOf(call, listing);
    let first: ListAnswer | undefined;

    async function pageFrom(pageToken: string | undefined, limit: number | undefined): Promise<ListAnswer> {
      const spelling = listing.spell && { delimiter: DEFAULT_DELIMITER };
      const message = Object.assign(clone(call.method.input, asked), { pageToken, limit, ...spelling });
      // The headers of the answer are those of the first page.
      const own = first === undefined ? call : copyCall(call, { responseHeaders: {} });
      const page = await next(own, { ...request, message } as unknown as OperationRequest);
      first ??= page as unknown as ListAnswer;
      return page as unknown as ListAnswer;
    }
    const source: Source = async (pageToken, limit) => {
      const page = await pageFrom(pageToken, limit);
      checkProgress(pageToken, page.pageToken);
      const entries = page[listing.field] as never[];
      const visible = await visibleIn(entries, call, listing, siblings);
      if (after !== undefined)
        entries.forEach((entry, at) => {
          visible[at] &&= isAfter(after, listing.spell?.(entry, asked) ?? entry);
        });
      return { entries, token: page.pageToken, visible };
    };
    /** Returns the page as it is, or nothing of it. */
    async function allOrNothing(isAllowed: boolean): Promise<Page> {
      const page = await pageFrom(start, asked.limit);
      if (!isAllowed) return { entries: [], token: undefined };
      return { entries: page[listing.field] as unknown[], token: page.pageToken || undefined };
    }

    const plain = databases.get(call.database)?.backend.hasPlainPageTokens === true;
    const opened = asked.pageToken && seal.open(asked.pageToken, call);
    const start = plain ? (opened ?? asked.pageToken) : opened;
    // An upstream could take a name of the caller's choice for a token of its own, as a number for a place that counts hidden entries.
    const after = opened === undefined && !plain ? asked.pageToken : undefined;
    const { entries, token } =
      siblings?.exceptions.length === 0 && (after === undefined || !siblings.allowed)
        ? await allOrNothing(siblings.allowed)
        : await fullPage(source, { start, limit: asked.limit, plain });
    const pageToken = token === undefined || plain ? token : seal.seal(token, call);
    const { field, spell } = listing;
    const spelled = spell === undefined ? entries : entries.map((entry) => spell(entry as never, asked));
    return Object.assign(first as never, { [field]: spelled, pageToken });
  }

  return onlyFor(
    ({ action }) => action === "list",
    (call, request, next) => list(call, request, next, listingOf(request.operation)),
  );
}

/**
 * Whether an entry follows a name that the caller has written in place of a token.
 *
 * @throws LanceError InvalidInput for an entry without a name
 */
function isAfter(name: string, entry: unknown): boolean {
  if (typeof entry === "string") return entry > name;
  throw new LanceError("InvalidInput", "page_token is not from this listing");
}

/** An entry about which the authorizer has to be asked. */
interface Asked {
  /** Its place in the page. */
  readonly at: number;
  /** Its place among the exceptions, if it is one. */
  readonly exception?: number;
}

/** Decisions about the entries of a page, as far as they are known, and the entries about which they are not. */
interface Known {
  readonly visible: boolean[];
  readonly asked: readonly Asked[];
}

function undecided(count: number): Known {
  return {
    visible: Array.from({ length: count }, () => false),
    asked: Array.from({ length: count }, (_, at) => ({ at })),
  };
}

/** Decides about the entries that are like all in their namespace, and about those whose decision is known. */
function decided(names: readonly string[], { allowed, exceptions, known }: Siblings): Known {
  const find = createNameFinder(exceptions);
  const asked: Asked[] = [];
  const visible = names.map((name, at) => {
    const exception = find(name);
    if (exception < 0) return allowed;
    const answer = known[exception];
    if (answer === undefined) asked.push({ at, exception });
    return answer === true;
  });
  return { visible, asked };
}

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

/** Request of a listing. */
type ListRequest = Message & { limit?: number; pageToken?: string; delimiter?: string };

/** Answer of a listing; the entries are in the field of the listing. */
type ListAnswer = Message & { readonly [field: string]: unknown; readonly pageToken?: string };

/** A listing of objects. */
interface Listing {
  /** Field of the answer with the entries. */
  readonly field: string;
  /** Right that shows the entries, if these are the names of objects in the object of the call. Default: they are not. */
  readonly children?: Pick<Touch, "operation" | "kind">;
  /**
   * Spells an entry, which the backend has spelled with `$`, as the request wants it. With a delimiter of the caller's choice, a hidden
   * object could read like one that the caller may see. Default: no request decides how entries are spelled.
   */
  readonly spell?: (entry: never, request: ListRequest) => unknown;
  /**
   * Returns what the caller needs to see an entry; undefined hides the entry.
   *
   * @param isRoot whether the call lists the databases.
   */
  needs(entry: never, call: Call, isRoot: boolean): Touch | undefined;
}

const TABLES = {
  children: { operation: "describeTable", kind: "Table" },
  needs: (name: string, { id }: Call) => seeTable([...id, name]),
} as const;

/** The operations that list objects of the catalog. Lists of what belongs to a single table need a right to the table. */
const LISTINGS: { readonly [K in OperationName]?: Listing } = {
  listNamespaces: {
    field: "namespaces",
    children: { operation: "describeNamespace", kind: "Namespace" },
    needs: (name: string, { id }, isRoot) =>
      isRoot
        ? { operation: "describeNamespace", kind: "Database", id: [], database: name }
        : { operation: "describeNamespace", kind: "Namespace", id: [...id, name] },
  },
  listTables: { field: "tables", ...TABLES },
  listMaterializedViews: { field: "views", ...TABLES },
  listViews: { field: "views", ...TABLES },
  listAllTables: {
    field: "tables",
    needs: (text: string) => seeNamed(text),
    spell: (text: string, { delimiter }) =>
      delimiter === undefined ? text : joinIdentifier(parseIdentifier(text), delimiter),
  },
  listJobs: { field: "jobs", needs: ({ table }: JobSummary) => seeNamed(table) },
};

/**
 * Returns the listing of an operation.
 *
 * @throws Error for an operation that lists objects in a way that is not known
 */
function listingOf(operation: OperationName): Listing {
  const listing = LISTINGS[operation];
  if (listing === undefined) throw new Error(`${operation} lists what nothing filters`);
  return listing;
}

function seeTable(id: Identifier): Touch {
  return { operation: "describeTable", kind: "Table", id };
}

function seeNamed(text: string): Touch | undefined {
  try {
    return seeTable(parseIdentifier(text));
  } catch (thrown) {
    // Nobody could name the object.
    if (isLanceError(thrown, "InvalidInput")) return undefined;
    throw thrown;
  }
}
