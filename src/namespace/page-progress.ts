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
 * @throws LanceError as {@link checkProgress} does
 */
export async function* pagesOf<P extends Page>(
  read: (pageToken: string | undefined) => Promise<P>,
): AsyncGenerator<P, void> {
  for (let asked: string | undefined; ; ) {
    const page = await read(asked);
    yield page;
    if (!page.pageToken) return;
    checkProgress(asked, page.pageToken);
    asked = page.pageToken;
  }
}
