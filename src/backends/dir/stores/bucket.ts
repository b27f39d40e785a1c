import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "../../../runtime/clocks.ts";
import { RefusedRequest } from "../format/decisive-request.ts";
import type { ObjectInfo, ObjectStore, ObjectTail, TaggedObject } from "../format/storage.ts";

/** A part of an object: from `start` to before `end`, or the last `length` bytes. */
export type ByteRange = { readonly start: number; readonly end: number } | { readonly length: number };

/** Returns the bounds of a part of an object of a size, in bytes; no byte is between them if the part begins beyond the end. */
export function boundsOf(range: ByteRange, size: number): { readonly start: number; readonly end: number } {
  if ("length" in range) return { start: Math.max(0, size - range.length), end: size };
  return { start: range.start, end: Math.min(range.end, size) };
}

/** An object in a listing. */
export interface ListedObject extends ObjectInfo {
  /** The tag that {@link Bucket.deleteTagged} takes; undefined if the listing lacks it. */
  readonly tag: string | undefined;
}

/** A page of a listing. */
export interface BucketPage {
  readonly objects: readonly ListedObject[];
  /** Prefixes of keys up to and including a slash, at which the listing stops. */
  readonly prefixes: readonly string[];
  /** Start of the next page; undefined at the end. */
  readonly next: string | undefined;
}

/** Query for a page of a listing. */
export interface PageQuery {
  readonly prefix: string;
  /** Whether keys are listed beyond the next slash. */
  readonly recursive: boolean;
  /** Maximum number of entries. Default: the service's. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. Default: the first page. */
  readonly from?: string | undefined;
}

/** Operations of a service on a bucket; failures are thrown as {@link ObjectStore} says. */
export interface Bucket {
  /** Scheme of its URIs. */
  readonly scheme: string;
  readonly name: string;
  readonly listsInOrder: boolean;
  /** See {@link ObjectStore.hasEntityTags}. */
  readonly hasEntityTags?: boolean;
  get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  getTagged(key: string, signal?: AbortSignal): Promise<TaggedObject | undefined>;
  getStream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Returns a range that is not empty; a range that begins beyond the end has no bytes. */
  getPart(key: string, range: ByteRange, signal?: AbortSignal): Promise<ObjectTail | undefined>;
  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | undefined>;
  /** Returns a page of the keys with a prefix. */
  page(query: PageQuery, signal?: AbortSignal): Promise<BucketPage>;
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  putStream(key: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * Makes an attempt to write an object unless one exists.
   *
   * @param attempts number of earlier attempts; each has more time
   */
  create(key: string, bytes: Uint8Array, attempts: number): Promise<Outcome>;
  /** Makes an attempt to write an object in place of the one with a tag; `attempts` as for {@link create}. */
  replace(key: string, bytes: Uint8Array, tag: string, attempts: number): Promise<Outcome>;
  copy(from: string, to: string): Promise<void>;
  /** Deletes objects; missing ones are ignored. */
  delete(keys: readonly string[]): Promise<void>;
  /** Makes an attempt to delete the object with a tag; `attempts` as for {@link create}. */
  deleteTagged(key: string, tag: string, attempts: number): Promise<Outcome>;
}

/** Cuts bytes, as they arrive, into pieces of equal size; the last may be shorter. */
export async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  size: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  let held: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    signal?.throwIfAborted();
    held.push(chunk);
    length += chunk.byteLength;
    if (length < size) continue;
    const whole = Buffer.concat(held);
    let at = 0;
    for (; length - at >= size; at += size) yield whole.subarray(at, at + size);
    held = [whole.subarray(at)];
    length -= at;
  }
  if (length > 0) yield Buffer.concat(held);
}

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
type Owner = "ours" | "theirs" | "nobody's";

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
