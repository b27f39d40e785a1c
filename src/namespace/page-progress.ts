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
