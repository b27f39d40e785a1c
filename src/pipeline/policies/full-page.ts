/** A page of a listing, with the entries that the caller may see. */
export interface SourcePage {
  readonly entries: readonly unknown[];
  /** Whether the caller may see each entry. */
  readonly visible: readonly boolean[];
  /** Token of the next page; undefined or empty on the last one. */
  readonly token: string | undefined;
}

/** Returns a page after a token, with a limit or by the choice of the backend. */
export type Source = (token: string | undefined, limit: number | undefined) => Promise<SourcePage>;

/** A page of visible entries. */
export interface Page {
  readonly entries: readonly unknown[];
  readonly token: string | undefined;
}

/** Entries that are asked for at a time where the caller does not see how many there are. */
const BATCH = 1_000;

/**
 * Collects a page of visible entries that is as long as the page of the backend would be. A token leads to the place directly after
 * the last entry of the page, and exists only if a visible entry follows.
 */
export async function fullPage(
  source: Source,
  start: string | undefined,
  limit: number | undefined,
): Promise<Page> {
  let page = await source(start, limit);
  if (!page.token) return { entries: visibleOf(page), token: undefined };
  const wanted = Math.max(page.entries.length, 1);
  const entries: unknown[] = [];
  for (let at = start; ; page = await source(at, BATCH)) {
    const room = wanted - entries.length;
    const end = endOf(page, room);
    if (end !== undefined && end < page.entries.length) {
      // Only the backend can make the token of a place within its page.
      const cut = await source(at, end);
      entries.push(...visibleOf(cut));
      return { entries, token: await ifMore(source, cut.token) };
    }
    entries.push(...visibleOf(page));
    if (end !== undefined || !page.token) return { entries, token: await ifMore(source, page.token) };
    at = page.token;
  }
}

function visibleOf({ entries, visible }: SourcePage): readonly unknown[] {
  return visible.every(Boolean) ? entries : entries.filter((_, i) => visible[i]);
}

/** Returns the place after a number of visible entries; undefined if the page has fewer. */
function endOf({ visible }: SourcePage, count: number): number | undefined {
  let seen = 0;
  for (const [i, isVisible] of visible.entries()) {
    if (isVisible) seen += 1;
    if (seen === count) return i + 1;
  }
  return undefined;
}

/** Returns a token if a visible entry comes after it. */
async function ifMore(source: Source, token: string | undefined): Promise<string | undefined> {
  for (let [at, limit] = [token, 1]; at; limit = BATCH) {
    const page = await source(at, limit);
    if (page.visible.some(Boolean)) return token;
    at = page.token;
  }
  return undefined;
}
