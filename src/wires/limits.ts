import { LanceError } from "../namespace/errors.ts";

/**
 * Number of bytes of each request that no budget counts, so that small calls, including health checks, continue while
 * others have used up the memory for requests.
 */
export const FREE_BYTES = 8 * 1024;

/** Longest time for a JSON body, or a single message of the other protocols, to arrive, in milliseconds. */
export const MESSAGE_MS = 120_000;

/** Returns the error for a message that takes longer than {@link MESSAGE_MS}. */
export function lateMessage(): LanceError {
  return new LanceError(
    "DeadlineExceeded",
    `the request's message did not arrive within ${MESSAGE_MS / 1000} seconds`,
  );
}
