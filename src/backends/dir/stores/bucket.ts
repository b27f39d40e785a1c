import type { ObjectInfo, ObjectStore, ObjectTail } from "../format/storage.ts";
import type { PutOutcome } from "./conditional-put.ts";

/** A part of an object: from `start` to before `end`, or the last `length` bytes. */
export type ByteRange = { readonly start: number; readonly end: number } | { readonly length: number };

/** A page of a listing. */
export interface BucketPage {
  readonly objects: readonly ObjectInfo[];
  /** Beginnings of keys up to and with a slash, where the listing stops at one. */
  readonly prefixes: readonly string[];
  /** Where the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

/** What a page of a listing is asked by. */
export interface PageQuery {
  readonly prefix: string;
  /** Whether keys are listed beyond the next slash. */
  readonly recursive: boolean;
  /** The most entries. Default: as many as the service likes. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. Default: the first page. */
  readonly from?: string | undefined;
}

/** What a service has for a bucket; failures are thrown as {@link ObjectStore} says. */
export interface Bucket {
  /** The scheme of its URIs. */
  readonly scheme: string;
  readonly name: string;
  readonly listsInOrder: boolean;
  get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  getStream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** A range that is not empty; one that begins behind the end gives no bytes. */
  getPart(key: string, range: ByteRange, signal?: AbortSignal): Promise<ObjectTail | undefined>;
  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | undefined>;
  /** A page of the keys with a prefix. */
  page(query: PageQuery, signal?: AbortSignal): Promise<BucketPage>;
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  putStream(key: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * One attempt to write an object unless one is there.
   *
   * @param attempts how many there were before; each has more time
   */
  create(key: string, bytes: Uint8Array, attempts: number): Promise<PutOutcome>;
  copy(from: string, to: string): Promise<void>;
  /** Deletes objects; those that are not there are fine. */
  delete(keys: readonly string[]): Promise<void>;
}
