import { LanceError } from "../../namespace/errors.ts";

/** Pause after a first failure, in milliseconds; it doubles with each further one, up to the longest. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Maximum number of subjects whose failures are remembered. */
const MAX_SUBJECTS = 1_000;

/** Scope of a failed fetch: the subject alone, or all requests to the provider. */
export type FailureScope = "subject" | "provider";

interface Failure {
  readonly error: unknown;
  readonly until: number;
  readonly pauseMs: number;
}

/** Remembers failed fetches temporarily, so that a provider is not asked again for every call. */
export interface RefusedFetches {
  /** Returns the failure that blocks a fetch; undefined if the fetch may be made. */
  standing(subject: string): unknown;
  add(subject: string, scope: FailureScope, error: unknown): void;
  /** Forgets what a success disproves. */
  clear(subject: string): void;
}

/**
 * Creates a memory without failures.
 *
 * @param now the time in epoch milliseconds
 */
export function createRefusedFetches(now: () => number): RefusedFetches {
  /** Separate from the tokens, so that clients with invented credentials evict no token. */
  const bySubject = new Map<string, Failure>();
  let ofProvider: Failure | undefined;

  function next(before: Failure | undefined, error: unknown): Failure {
    const pauseMs = before === undefined ? FIRST_PAUSE_MS : Math.min(before.pauseMs * 2, LONGEST_PAUSE_MS);
    return { error, pauseMs, until: now() + pauseMs };
  }

  return {
    standing(subject) {
      const found = [ofProvider, bySubject.get(subject)].find(
        (failure) => failure !== undefined && now() < failure.until,
      );
      return found && withRetryAfter(found.error, found.until - now());
    },
    add(subject, scope, error) {
      if (scope === "provider") {
        ofProvider = next(ofProvider, error);
        return;
      }
      const failure = next(bySubject.get(subject), error);
      bySubject.delete(subject);
      bySubject.set(subject, failure);
      const [oldest] = bySubject.keys();
      if (bySubject.size > MAX_SUBJECTS && oldest !== undefined) bySubject.delete(oldest);
    },
    clear(subject) {
      ofProvider = undefined;
      bySubject.delete(subject);
    },
  };
}

/** Adds when to retry to an error, if the provider can fix it. */
function withRetryAfter(error: unknown, ms: number): unknown {
  if (!(error instanceof LanceError) || !error.is("ServiceUnavailable")) return error;
  const headers = { "retry-after": String(Math.ceil(ms / 1000)) };
  return new LanceError("ServiceUnavailable", error.message, { cause: error.cause, headers });
}
