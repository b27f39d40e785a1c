import { setTimeout as sleep } from "node:timers/promises";

/** What came of one attempt to write an object unless one is there. */
export type PutOutcome =
  | "created"
  /** An object is there. */
  | "taken"
  /** Another writer is at it right now; nothing was written. */
  | "busy"
  /** A failure that may pass; perhaps the object was written all the same. */
  | { readonly unclear: unknown };

/** How often an object is tried to be written. */
const ATTEMPTS = 5;

/** The longest pause before the second attempt, in milliseconds; it doubles with each one. */
const PAUSE = 50;

/**
 * Writes an object unless one is there, and tells its own success from another writer's also where the answer
 * to an earlier attempt was lost.
 *
 * @param attempt throws what no further attempt can change
 * @param holds whether the object that is there has the same bytes
 */
export async function conditionalPut(
  attempt: () => Promise<PutOutcome>,
  holds: () => Promise<boolean>,
): Promise<boolean> {
  let unclear = false;
  let failure: unknown;
  for (let count = 0; count < ATTEMPTS; count++) {
    if (count > 0) await sleep(Math.random() * PAUSE * 2 ** count);
    const outcome = await attempt();
    if (outcome === "created") return true;
    if (outcome === "taken") return unclear && holds();
    if (outcome === "busy") continue;
    unclear = true;
    failure = outcome.unclear;
  }
  if (unclear) throw failure;
  // Whoever was at it all the time has written it.
  return false;
}
