import { LanceError } from "../../../namespace/errors.ts";
import type { PageContext } from "./context.ts";

/** Returns the maximum number of entries of a page; a limit that is not positive counts as absent. */
export function pageSize({ maxPageSize }: PageContext, limit = 0): number {
  return limit > 0 ? Math.min(limit, maxPageSize) : maxPageSize;
}

/**
 * Makes the token of a page.
 *
 * @param listing the objects that are listed and their order; another listing refuses the token
 * @param last the last entry of the page before
 */
export function encodeToken(listing: string, last: string): string {
  return Buffer.from(`${listing}:${last}`).toString("base64url");
}

/**
 * Reads a token of {@link encodeToken}; an absent or empty token belongs to the first page.
 *
 * @throws LanceError InvalidInput
 */
export function decodeToken(listing: string, token = ""): string | undefined {
  if (token === "") return undefined;
  const text = Buffer.from(token, "base64url").toString("utf8");
  if (text.startsWith(`${listing}:`)) return text.slice(listing.length + 1);
  throw new LanceError("InvalidInput", "page_token is not from this listing");
}

/** Returns a page of named entries, in the order of their names. */
export function pageOfNames<T>(
  context: PageContext,
  listing: string,
  entries: ReadonlyMap<string, T>,
  { limit, pageToken }: { readonly limit?: number | undefined; readonly pageToken?: string | undefined },
): { readonly entries: [name: string, entry: T][]; readonly pageToken?: string } {
  const after = decodeToken(listing, pageToken);
  const rest = [...entries]
    .filter(([name]) => after === undefined || name > after)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const page = rest.slice(0, pageSize(context, limit));
  const last = page.at(-1);
  if (page.length === rest.length || last === undefined) return { entries: page };
  return { entries: page, pageToken: encodeToken(listing, last[0]) };
}
