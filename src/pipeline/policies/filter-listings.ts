import { clone } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import type { Interceptor, OperationRequest } from "../interceptor.ts";
import { fullPage, type Source } from "./full-page.ts";
import { LISTINGS, type ListAnswer, type Listing, type ListRequest } from "./listings.ts";
import type { Permissions } from "./permissions.ts";

/**
 * Removes from listings what the caller may not see. Pages stay full, and their tokens come after an entry that the
 * caller sees.
 */
export function filterListings(permissions: Permissions): Interceptor {
  /** Returns for each entry whether the caller of a call may see it. */
  async function visibleIn(
    entries: readonly never[],
    call: Call,
    request: ListRequest,
    { needs }: Listing,
  ): Promise<boolean[]> {
    const isRoot = permissions.databaseOf(call) === "";
    const touches = entries.map((entry) => needs(entry, call, request, isRoot));
    const decisions = (
      await permissions.allowEach(
        call,
        touches.filter((touch) => touch !== undefined),
      )
    ).values();
    return touches.map((touch) => touch !== undefined && decisions.next().value === true);
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

    const { entries, token } = await fullPage(source, asked.pageToken, asked.limit);
    return Object.assign(first as never, { [listing.field]: entries, pageToken: token });
  };
}
