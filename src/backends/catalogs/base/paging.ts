import { LanceError } from "../../../namespace/errors.ts";
import { checkIdentifier, type Identifier } from "../../../namespace/identifier.ts";
import { checkProgress } from "../../../namespace/page-progress.ts";
import type { NamesPage, PageRequest } from "./catalog.ts";

/** Maximum number of pages that the gateway reads from a catalog for a single call. */
export const MAX_PAGES = 1_000;

/** Maximum number of names in an answer; a longer listing continues with a token. */
export const MAX_NAMES = 100_000;

/** Longest token that a catalog may give, in characters: it travels in the query of the next request. */
const MAX_TOKEN_LENGTH = 8 * 1024;

/** Place in a listing: a page of the catalog, and the last name of it that was returned. */
export interface Place {
  readonly token?: string | undefined;
  readonly after?: string | undefined;
}

/** A page of a catalog, without names that no identifier can have. */
interface CatalogPage {
  /** The catalog's token of this page. */
  readonly token: string | undefined;
  /** Names after the place that was asked for, in order and each once. */
  readonly names: readonly string[];
  /** The catalog's token of the next page. Default: there is none. */
  readonly next: string | undefined;
}

/** Lists a page of a catalog. */
type List = (page: PageRequest) => Promise<NamesPage>;

/** A page as the contract has it. */
export interface ListedPage {
  readonly names: string[];
  readonly pageToken: string | undefined;
}

/** Page that a client requests. */
export interface ListRequest {
  readonly pageToken?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * Lists names page by page. A catalog's page may have fewer names than requested, because entries of other formats are left
 * out, or more, because the catalog ignores the size; the answer has at most the client's limit, and each name once.
 *
 * Names that no identifier can have, for example with a `/` or a `$`, are left out: no call could reach them.
 *
 * @throws LanceError InvalidInput for a token that no listing returned; ServiceUnavailable for a catalog whose pages do not end
 */
export async function listNames(list: List, { pageToken, limit = 0 }: ListRequest): Promise<ListedPage> {
  const isLimited = limit > 0 && limit < MAX_NAMES;
  const most = isLimited ? limit : MAX_NAMES;
  const names = new Set<string>();
  const size = () => (isLimited ? most - names.size : undefined);
  for await (const { token, names: found, next } of readPages(list, placeOf(pageToken), size)) {
    const left = most - names.size;
    const fresh = found.filter((name) => !names.has(name));
    for (const name of fresh.slice(0, left)) names.add(name);
    if (fresh.length > left) return pageOf(names, { token, after: fresh[left - 1] });
    if (next !== undefined && names.size >= most) return pageOf(names, { token: next });
  }
  return pageOf(names, undefined);
}

/**
 * Reads a listing from a place on, to its end.
 *
 * @param size number of names that the next page should have
 * @throws LanceError ServiceUnavailable for a catalog whose pages do not end
 */
export async function* readPages(
  list: List,
  place: Place,
  size: () => number | undefined,
): AsyncGenerator<CatalogPage, void> {
  const seen = new Set<string>();
  let { token, after } = place;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await list({ token, size: size() });
    const start = after;
    const names = [...new Set(answer.names)]
      .filter((name) => isReachable([name]) && (start === undefined || name > start))
      .sort();
    const next = answer.next || undefined;
    checkProgress(token, next);
    if (next !== undefined && (seen.has(next) || next.length > MAX_TOKEN_LENGTH)) throw endless();
    yield { token, names, next };
    if (next === undefined) return;
    seen.add(next);
    [token, after] = [next, undefined];
  }
  throw endless();
}

/** Whether a path can carry an identifier. */
export function isReachable(id: Identifier): boolean {
  if (id.some((name) => /[\p{Cc}/\\]/u.test(name))) return false;
  try {
    checkIdentifier(id);
    return true;
  } catch {
    return false;
  }
}

function pageOf(names: ReadonlySet<string>, place: Place | undefined): ListedPage {
  return { names: [...names], pageToken: place && tokenOf([place]) };
}

function endless(): LanceError {
  return new LanceError(
    "ServiceUnavailable",
    `a listing of the catalog does not end after ${MAX_PAGES} pages`,
  );
}

/** Returns the token of a page that begins at a place, or at a path of them. */
export function tokenOf(places: readonly Place[]): string {
  const parts = places.flatMap(({ token, after }) => [token ?? null, after ?? null]);
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function placeOf(text: string | undefined): Place {
  const [place = {}, ...more] = placesOf(text);
  if (more.length > 0) throw foreign();
  return place;
}

/**
 * Returns the places of a token, none for the first page.
 *
 * @throws LanceError InvalidInput for a token that no listing returned
 */
export function placesOf(text: string | undefined): readonly Place[] {
  if (!text) return [];
  const parts = partsOf(text);
  if (parts.length % 2 > 0 || parts.length === 0 || !parts.every(isPart)) throw foreign();
  const all = parts.map((part) => part ?? undefined);
  return all.flatMap((token, at) => (at % 2 === 0 ? { token, after: all[at + 1] } : []));
}

function partsOf(text: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    return Array.isArray(parts) ? parts : [];
  } catch {
    throw foreign();
  }
}

function isPart(value: unknown): value is string | null {
  return value === null || (typeof value === "string" && value.length <= MAX_TOKEN_LENGTH);
}

/** Returns the error for a token that no listing returned. */
export function foreign(): LanceError {
  return new LanceError("InvalidInput", "page_token is not the token of a page of this listing");
}
