import type { ObjectInfo, ObjectStore, ObjectTail, TaggedObject } from "../format/storage.ts";
import type { Outcome } from "./conditional-put.ts";

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
