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

/** Whose an object is that was perhaps written. */
export type Owner = "ours" | "theirs" | "nobody's";

/** How often an object is tried to be written. */
const ATTEMPTS = 5;

/** The longest pause before the second attempt, in milliseconds; it doubles with each one. */
const PAUSE = 50;

/**
 * Writes an object unless one is there, and tells its own success from another writer's also where the answer
 * to an earlier attempt was lost or came too late. An attempt that was given up may still land: it then meets the object
 * of a later one, or is recognised by its bytes.
 *
 * @param attempt gets the number of those before it; throws what no further attempt can change
 * @param ownerOf tells by the bytes that are there
 */
export async function conditionalPut(
  attempt: (attempts: number) => Promise<PutOutcome>,
  ownerOf: () => Promise<Owner>,
): Promise<boolean> {
  let unclear = false;
  let failure: unknown;
  for (let count = 0; count < ATTEMPTS; count++) {
    if (count > 0) await sleep(Math.random() * PAUSE * 2 ** count);
    const outcome = await attempt(count);
    if (outcome === "created") return true;
    if (outcome === "taken") return unclear && (await ownerOf()) === "ours";
    if (outcome === "busy") continue;
    unclear = true;
    failure = outcome.unclear;
  }
  // Whoever was at it all the time has written it.
  if (!unclear) return false;
  const owner = await ownerOf();
  if (owner === "nobody's") throw failure;
  return owner === "ours";
}
