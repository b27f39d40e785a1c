import { clone } from "@bufbuild/protobuf";
import type { Siblings } from "../../namespace/authorizer.ts";
import type { Call } from "../../namespace/call.ts";
import type { Databases } from "../databases.ts";
import type { Interceptor, OperationRequest } from "../interceptor.ts";
import { createNameFinder } from "./find-names.ts";
import { fullPage, type Source } from "./full-page.ts";
import { LISTINGS, type ListAnswer, type Listing, type ListRequest } from "./listings.ts";
import type { Permissions } from "./permissions.ts";
import type { TokenSeal } from "./token-seal.ts";

/**
 * Removes from listings what the caller may not see. Pages stay full, and their tokens come after an entry that the
 * caller sees.
 */
export function filterListings(permissions: Permissions, databases: Databases, seal: TokenSeal): Interceptor {
  /** Returns for each entry whether the caller of a call may see it. */
  async function visibleIn(
    entries: readonly never[],
    call: Call,
    request: ListRequest,
    { needs, children }: Listing,
  ): Promise<boolean[]> {
    const isRoot = permissions.databaseOf(call) === "";
    const siblings =
      children && !isRoot ? permissions.allowSiblings(call, children.operation, children.kind) : undefined;
    const { visible, asked } =
      siblings === undefined ? undecided(entries.length) : decided(entries, siblings);
    const touches = asked.map(({ at }) => needs(entries[at] as never, call, request, isRoot));
    const named = touches.filter((touch) => touch !== undefined);
    const decisions = (await permissions.allowEach(call, named)).values();
    for (const [i, { at, exception }] of asked.entries()) {
      const answer = touches[i] !== undefined && decisions.next().value === true;
      visible[at] = answer;
      if (exception !== undefined && siblings !== undefined) siblings.known[exception] = answer;
    }
    return visible;
  }

  return async (call, request, next) => {
    const listing = LISTINGS[request.operation];
    if (listing === undefined) return next(call, request);
    call.takes = undefined;
    const asked = request.message as ListRequest;
    let first: ListAnswer | undefined;

    const source: Source = async (pageToken, limit) => {
      const message = Object.assign(clone(call.method.input, asked), { pageToken, limit });
      // The headers of the answer are those of the first page.
      const own = first === undefined ? call : { ...call, responseHeaders: {} };
      const page = (await next(own, {
        ...request,
        message,
      } as unknown as OperationRequest)) as unknown as ListAnswer;
      first ??= page;
      const entries = page[listing.field] as never[];
      return { entries, token: page.pageToken, visible: await visibleIn(entries, call, asked, listing) };
    };

    const start = asked.pageToken && seal.open(asked.pageToken, call);
    const { entries, token } = await fullPage(source, start, asked.limit);
    const isPlain = databases.get(call.database)?.backend.hasPlainPageTokens === true;
    const pageToken = token === undefined || isPlain ? token : seal.seal(token, call);
    return Object.assign(first as never, { [listing.field]: entries, pageToken });
  };
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
