import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "../../../runtime/time/backoff.ts";
import { RefusedRequest } from "../format/decisive-request.ts";

/** Outcome of an attempt to change an object under a condition. */
export type Outcome =
  | "done"
  /** The condition is not true: an object exists, or has another tag, or is gone. */
  | "refused"
  /** Another writer is changing it right now; nothing was changed. */
  | "busy"
  /** A transient failure; the object may have been changed nevertheless. */
  | { readonly unclear: unknown };

/** Author of the state of an object that may have been changed. */
export type Owner = "ours" | "theirs" | "nobody's";

/** Maximum number of attempts. */
const ATTEMPTS = 5;

/** The number of earlier attempts by which an attempt that no other may follow gets its time: the first is given up early. */
const PATIENT = 2;

/** Longest pause before the second attempt, in milliseconds; it doubles with each one. */
const PAUSE = 50;

/**
 * Changes an object under a condition, and distinguishes its own success from another writer's even if the answer to
 * an earlier attempt was lost or late. An abandoned attempt may still land: it then meets the object of a later one,
 * or is recognised by its bytes.
 *
 * @param attempt gets the number of earlier attempts, with `wait` at least {@link PATIENT}; throws failures that no
 *   further attempt can change
 * @param ownerOf decides by the stored object; throws if that does not show it
 * @param onUnclear is called if an attempt may still land after the call; with `wait`, no attempt follows one that may
 *   still land, and the call fails unless it lands soon. Default: nobody has to know
 */
export async function conditionally(
  attempt: (attempts: number) => Promise<Outcome>,
  ownerOf: () => Promise<Owner>,
  onUnclear: (() => void) | "wait" = () => {},
): Promise<boolean> {
  const ownerAfter = (failure: unknown) =>
    ownerOf().catch(() => {
      throw failure;
    });
  let unclear = false;
  let failure: unknown;
  for (let count = 0; count < ATTEMPTS; count++) {
    if (count > 0) await sleep(Math.random() * backoffMs(count, PAUSE));
    const earlier = onUnclear === "wait" ? Math.max(count, PATIENT) : count;
    const outcome = await attempt(earlier).catch((error: unknown) => {
      throw unclear ? failure : error;
    });
    if (outcome === "done") return true;
    if (outcome === "refused") return unclear && (await ownerAfter(failure)) === "ours";
    if (outcome === "busy") continue;
    if (onUnclear === "wait") {
      if (!(outcome.unclear instanceof RefusedRequest)) return untilLanded(ownerOf, outcome.unclear);
    } else onUnclear();
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

/**
 * Waits until an attempt without an answer has landed, or another writer's has.
 *
 * @throws `failure` if that takes too long; the attempt may land later
 */
async function untilLanded(ownerOf: () => Promise<Owner>, failure: unknown): Promise<boolean> {
  for (let look = 1; look <= ATTEMPTS; look++) {
    await sleep(backoffMs(look, PAUSE));
    const owner = await ownerOf().catch(() => "nobody's");
    if (owner !== "nobody's") return owner === "ours";
  }
  throw failure;
}
