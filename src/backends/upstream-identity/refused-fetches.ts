import { LanceError } from "../../namespace/errors.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { putNewest } from "../../runtime/collections.ts";
import { type CellShape, type KeyedCells, openCells } from "../../runtime/threads/keyed-cells.ts";

/** Pause after a first failure, in milliseconds; it doubles with each further one, up to the longest. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Maximum number of subjects whose errors are remembered. */
const MAX_SUBJECTS = 1_000;

/** Shape of the numbers of pauses: the end, which is the rank; the length; and the place of the error in {@link ERRORS}. */
export const PAUSES_SHAPE: CellShape = { numbers: 2, keys: 4_096 };

/** Errors for callers whose token another worker has asked for; the text stays in the worker that has failed. */
const ERRORS = [
  ["ServiceUnavailable", "the identity provider has just given no token"],
  ["Unauthenticated", "the token cannot be exchanged: the identity provider has just refused it"],
] as const;

/** Key of a failure that concerns all subjects, whose own keys are hashes. */
const PROVIDER = "provider";

/** Scope of a failed fetch: the subject alone, or all requests to the provider. */
export type FailureScope = "subject" | "provider";

/** Where and when pauses are kept. */
export interface PausesOptions {
  /** The time in epoch milliseconds. */
  readonly now: () => number;
  /** Numbers of the shape {@link PAUSES_SHAPE}, which workers may share. Default: numbers of this memory alone. */
  readonly cells?: KeyedCells | undefined;
  /** Names the provider and the credentials of the gateway; pauses of others in the same cells do not count. Default: there are none. */
  readonly owner?: string | undefined;
}

/** Remembers failed fetches temporarily, so that a provider is not asked again for every call. */
export interface RefusedFetches {
  /** Returns the failure that blocks a fetch; undefined if the fetch may be made. */
  standing(subject: string): unknown;
  add(subject: string, scope: FailureScope, error: unknown): void;
  /** Forgets what a success disproves. */
  clear(subject: string): void;
}

/** Creates a memory of failures. */
export function createRefusedFetches({
  now,
  cells = openCells(PAUSES_SHAPE),
  owner = "",
}: PausesOptions): RefusedFetches {
  /** Separate from the tokens, so that clients with invented credentials evict no token. */
  const errors = new Map<string, unknown>();
  const cellOf = (key: string) => `${owner} ${key}`;

  /** Returns the failure under a key, unless its pause is over. */
  function pausing(key: string): unknown {
    const pause = cells.look(cellOf(key), (numbers, at) => {
      const ms = (numbers[at] as number) - now();
      // A rest that is longer than the pause shows that the clock was set back.
      return ms > 0 && ms <= (numbers[at + 1] as number)
        ? { ms, error: numbers[at + 2] as number }
        : undefined;
    });
    if (pause === undefined) return undefined;
    const own = errors.get(key);
    const isOwn = own !== undefined && placeOf(own) === pause.error;
    return withRetryAfter(isOwn ? own : errorAt(pause.error), pause.ms);
  }

  function end(key: string): void {
    errors.delete(key);
    cells.look(cellOf(key), (numbers, at) => numbers.fill(0, at, at + 1 + cells.numbers));
  }

  return {
    standing: (subject) => pausing(PROVIDER) ?? pausing(subject),
    add(subject, scope, error) {
      const key = scope === "provider" ? PROVIDER : subject;
      cells.change(cellOf(key), (numbers, at) => {
        const before = numbers[at + 1] as number;
        const pauseMs = before === 0 ? FIRST_PAUSE_MS : backoffMs(1, before, LONGEST_PAUSE_MS);
        numbers[at] = now() + pauseMs;
        numbers[at + 1] = pauseMs;
        numbers[at + 2] = placeOf(error);
      });
      putNewest(errors, key, error, MAX_SUBJECTS);
    },
    clear(subject) {
      end(PROVIDER);
      end(subject);
    },
  };
}

function placeOf(error: unknown): number {
  const place = ERRORS.findIndex(([kind]) => error instanceof LanceError && error.kind === kind);
  return Math.max(0, place);
}

function errorAt(place: number): LanceError {
  const [kind, text] = ERRORS[place] ?? ERRORS[0];
  return new LanceError(kind, text);
}

/** Adds when to retry to an error, if the provider can fix it. */
function withRetryAfter(error: unknown, ms: number): unknown {
  if (!(error instanceof LanceError) || !error.is("ServiceUnavailable")) return error;
  const headers = { "retry-after": String(Math.ceil(ms / 1000)) };
  return new LanceError("ServiceUnavailable", error.message, { cause: error.cause, headers });
}
