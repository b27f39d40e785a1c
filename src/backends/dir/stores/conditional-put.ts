import { setTimeout as sleep } from "node:timers/promises";
import { RefusedRequest } from "../format/refused-request.ts";

/** Outcome of an attempt to write an object unless one exists. */
export type PutOutcome =
  | "created"
  /** An object exists. */
  | "taken"
  /** Another writer is writing it right now; nothing was written. */
  | "busy"
  /** A transient failure; the object may have been written nevertheless. */
  | { readonly unclear: unknown };

/** Owner of an object that may have been written. */
export type Owner = "ours" | "theirs" | "nobody's";

/** Maximum number of attempts. */
const ATTEMPTS = 5;

/** Longest pause before the second attempt, in milliseconds; it doubles with each one. */
const PAUSE = 50;

/**
 * Writes an object unless one exists, and distinguishes its own success from another writer's even if the answer to
 * an earlier attempt was lost or late. An abandoned attempt may still land: it then meets the object of a later one,
 * or is recognised by its bytes.
 *
 * @param attempt gets the number of earlier attempts; throws failures that no further attempt can change
 * @param ownerOf decides by the stored bytes
 */
export async function conditionalPut(
  attempt: (attempts: number) => Promise<PutOutcome>,
  ownerOf: () => Promise<Owner>,
): Promise<boolean> {
  const ownerAfter = (failure: unknown) =>
    ownerOf().catch(() => {
      throw failure;
    });
  let unclear = false;
  let failure: unknown;
  for (let count = 0; count < ATTEMPTS; count++) {
    if (count > 0) await sleep(Math.random() * PAUSE * 2 ** count);
    const outcome = await attempt(count).catch((error: unknown) => {
      throw unclear ? failure : error;
    });
    if (outcome === "created") return true;
    if (outcome === "taken") return unclear && (await ownerAfter(failure)) === "ours";
    if (outcome === "busy") continue;
    unclear = true;
    // A request that was refused says nothing about an earlier one.
    if (failure === undefined || failure instanceof RefusedRequest) failure = outcome.unclear;
  }
  // The other writer that was busy all the time has written it.
  if (!unclear) return false;
  const owner = await ownerAfter(failure);
  if (owner === "nobody's") throw failure;
  return owner === "ours";
}
