import { pagesOf } from "../namespace/page-progress.ts";

/** Answer of a listing: a promise of the first page, and an iterable of the entries of all pages. */
export interface Listing<Page, Item> extends Promise<Page>, AsyncIterable<Item> {
  /** Yields the pages, with a call for each. */
  pages(): AsyncIterable<Page>;
}

interface Paged {
  readonly pageToken?: string | undefined;
}

/**
 * Creates a listing from a function that fetches a page. It requests the first page at once, and further pages as
 * they are needed.
 *
 * @param field the field of a page that holds its entries, a list or a map.
 */
export function createListing<Page extends object, Item>(
  fetchPage: (pageToken: string | undefined) => Promise<Page>,
  field: string,
): Listing<Page, Item> {
  const first = fetchPage(undefined);
  // The iteration reports the failure; until then it must not count as unhandled.
  first.catch(() => {});

  const pages = () =>
    pagesOf<Page & Paged>((pageToken) => (pageToken === undefined ? first : fetchPage(pageToken)));

  async function* entries(): AsyncIterator<Item> {
    for await (const page of pages()) {
      const content = (page as Record<string, unknown>)[field] as readonly Item[] | Record<string, unknown>;
      yield* Array.isArray(content) ? content : (Object.entries(content) as Item[]);
    }
  }

  return Object.assign(first, { pages, [Symbol.asyncIterator]: entries });
}
