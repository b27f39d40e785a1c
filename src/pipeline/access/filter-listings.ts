import { clone } from "@bufbuild/protobuf";
import type { Siblings } from "../../namespace/authorizer.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { DEFAULT_DELIMITER } from "../../namespace/identifier.ts";
import { checkProgress } from "../../namespace/page-progress.ts";
import type { Databases } from "../call/databases.ts";
import { type Interceptor, type Next, type OperationRequest, onlyFor } from "../call/interceptor.ts";
import { createNameFinder } from "./find-names.ts";
import { fullPage, type Page, type Source } from "./full-page.ts";
import { type ListAnswer, type Listing, type ListRequest, listingOf } from "./listings.ts";
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
