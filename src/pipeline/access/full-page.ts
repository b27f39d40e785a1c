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

/** Facts about a listing. */
export interface Wish {
  /** Token of the page. */
  readonly start: string | undefined;
  /** Length of the page. Default: the choice of the backend. */
  readonly limit: number | undefined;
  /**
   * Whether the backend takes any limit, and the token of a page is the name of its last entry. The page is then cut where it is full,
   * without another call.
   */
  readonly plain: boolean;
}

/** Most entries that are asked for at a time where the caller does not see how many there are. */
const BATCH = 1_000;

/** Factor by which the number of entries grows while too few of them are visible. */
const GROWTH = 32;

/** Part of a page that may be hidden without another call. */
const SPARE = 1 / 8;

/**
 * Collects a page of visible entries that is as long as the page of the backend would be. A token leads to the place directly after
 * the last entry of the page, and exists only if a visible entry follows.
 */
export async function fullPage(source: Source, { start, limit, plain }: Wish): Promise<Page> {
  // An entry past the page says whether there is another page.
  const asked = plain && limit !== undefined && limit > 0 ? withSpare(limit) : limit;
  let page = await source(start, asked);
  const length = page.entries.length;
  const wanted = Math.max(asked === limit ? length : Math.min(length, limit as number), 1);
  const entries: unknown[] = [];
  let size = Math.min(BATCH, withSpare(wanted));
  for (let at = start; ; page = await source(at, size), size = grown(size)) {
    const end = endOf(page, wanted - entries.length);
    if (end !== undefined) return finish(source, entries, { page, at, end, plain });
    addVisible(entries, page);
    if (!page.token) return { entries, token: undefined };
    at = page.token;
  }
}

/** A page whose first entries fill the page of the caller. */
interface Last extends Pick<Wish, "plain"> {
  readonly page: SourcePage;
  /** Token of the page. */
  readonly at: string | undefined;
  /** Number of the entries. */
  readonly end: number;
}

async function finish(source: Source, entries: unknown[], { page, at, end, plain }: Last): Promise<Page> {
  const follows = page.visible.includes(true, end) || (await hasVisible(source, page.token));
  if (!follows || end === page.entries.length || isPlain(page, plain)) {
    addVisible(entries, page, end);
    const token = end === page.entries.length ? page.token : (page.entries[end - 1] as string);
    return { entries, token: follows ? token : undefined };
  }
  // Only the backend can make the token of a place within its page.
  const cut = await source(at, end);
  addVisible(entries, cut);
  return { entries, token: cut.token };
}

/** Whether tokens are names: the page's own one is, so that an interceptor behind this step that renames entries is noticed. */
function isPlain({ entries, token }: SourcePage, plain: boolean): boolean {
  return plain && token === entries.at(-1);
}

/** Whether a visible entry comes after a token. */
async function hasVisible(source: Source, token: string | undefined): Promise<boolean> {
  for (let [at, size] = [token, 1]; at; size = grown(size)) {
    const page = await source(at, size);
    if (page.visible.includes(true)) return true;
    at = page.token;
  }
  return false;
}

function withSpare(count: number): number {
  return count + 1 + Math.ceil(count * SPARE);
}

function grown(size: number): number {
  return Math.min(BATCH, size * GROWTH);
}

/** Adds the visible ones of the first entries of a page. @param count Default: all. */
function addVisible(entries: unknown[], page: SourcePage, count = page.entries.length): void {
  for (let at = 0; at < count; at++) if (page.visible[at]) entries.push(page.entries[at]);
}

/** Returns the place after a number of visible entries; undefined if the page has fewer. */
function endOf({ visible }: SourcePage, count: number): number | undefined {
  let seen = 0;
  for (let at = 0; at < visible.length; at++) {
    if (visible[at]) seen += 1;
    if (seen === count) return at + 1;
  }
  return undefined;
}
