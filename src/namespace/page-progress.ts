import { LanceError } from "./errors.ts";

/**
 * Checks that a listing goes on: a server that does not know a token could answer with its first page again, for ever.
 *
 * @param asked token of a page. Default: it was the first one.
 * @param next token of the page after it. Default: there is none.
 * @throws LanceError ServiceUnavailable, if both are the same.
 */
export function checkProgress(asked: string | undefined, next: string | undefined): void {
  if (!next || next !== asked) return;
  throw new LanceError(
    "ServiceUnavailable",
    "the listing does not go on: a page has its own token for the next one",
  );
}

interface Page {
  readonly pageToken?: string | undefined;
}

/**
 * Yields the pages of a listing.
 *
 * @param read returns the page of a token. Default: the first one
 * @param onRepeated called for a page that has its own token for the next one, which is the last then. Default: throws as
 *   {@link checkProgress} does
 */
export async function* pagesOf<P extends Page>(
  read: (pageToken: string | undefined) => Promise<P>,
  onRepeated: (token: string) => void = (token) => checkProgress(token, token),
): AsyncGenerator<P, void> {
  for (let asked: string | undefined; ; ) {
    const page = await read(asked);
    yield page;
    const { pageToken: next } = page;
    if (!next) return;
    if (next === asked) return onRepeated(next);
    asked = next;
  }
}
