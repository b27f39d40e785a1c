import { LanceError } from "../../../namespace/errors.ts";
import { checkIdentifier } from "../../../namespace/identifier.ts";
import { checkProgress } from "../../../namespace/page-progress.ts";
import type { NamesPage, PageRequest } from "./catalog.ts";

/** Maximum number of pages that the gateway reads from a catalog for a single call. */
export const MAX_PAGES = 1_000;

/** Maximum number of names in an answer; a longer listing continues with a token. */
export const MAX_NAMES = 100_000;

/** Longest token that a catalog may give, in characters: it travels in the query of the next request. */
const MAX_TOKEN_LENGTH = 8 * 1024;

/** Place in a listing: a page of the catalog, and the last name of it that was returned. */
interface Place {
  readonly token: string | undefined;
  readonly after: string | undefined;
}

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
export async function listNames(
  list: (page: PageRequest) => Promise<NamesPage>,
  { pageToken, limit = 0 }: ListRequest,
): Promise<ListedPage> {
  const isLimited = limit > 0 && limit < MAX_NAMES;
  const most = isLimited ? limit : MAX_NAMES;
  const names = new Set<string>();
  const seen = new Set<string>();
  let { token, after } = placeOf(pageToken);
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const left = most - names.size;
    const answer = await list({ token, size: isLimited ? left : undefined });
    const rest = [...new Set(answer.names)].filter((name) => isReachable(name) && !names.has(name)).sort();
    const start = after;
    const fresh = start === undefined ? rest : rest.filter((name) => name > start);
    after = undefined;
    for (const name of fresh.slice(0, left)) names.add(name);
    if (fresh.length > left) return pageOf(names, { token, after: fresh[left - 1] });
    const { next } = answer;
    if (!next) return pageOf(names, undefined);
    checkProgress(token, next);
    if (seen.has(next) || next.length > MAX_TOKEN_LENGTH) throw endless();
    seen.add(next);
    token = next;
    if (names.size >= most) return pageOf(names, { token, after: undefined });
  }
  throw endless();
}

/** Whether an identifier can have a name, and a path can carry it. */
function isReachable(name: string): boolean {
  if (/[\p{Cc}/\\]/u.test(name)) return false;
  try {
    checkIdentifier([name]);
    return true;
  } catch {
    return false;
  }
}

function pageOf(names: ReadonlySet<string>, place: Place | undefined): ListedPage {
  return { names: [...names], pageToken: place && tokenOf(place) };
}

function endless(): LanceError {
  return new LanceError(
    "ServiceUnavailable",
    `a listing of the catalog does not end after ${MAX_PAGES} pages`,
  );
}

function tokenOf({ token, after }: Place): string {
  return Buffer.from(JSON.stringify([token ?? null, after ?? null])).toString("base64url");
}

function placeOf(text: string | undefined): Place {
  if (!text) return { token: undefined, after: undefined };
  const [token, after, ...more] = partsOf(text);
  if (more.length > 0 || !isPart(token) || !isPart(after) || (token === null && after === null))
    throw foreign();
  return { token: token ?? undefined, after: after ?? undefined };
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

function foreign(): LanceError {
  return new LanceError("InvalidInput", "page_token is not the token of a page of this listing");
}
