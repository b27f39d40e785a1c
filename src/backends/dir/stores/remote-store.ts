import { LanceError } from "../../../namespace/errors.ts";
import { Budget, hedge } from "../../resilience/attempts.ts";
import { forEachOf } from "../concurrency/for-each.ts";
import { damagedFile } from "../format/files/damaged-file.ts";
import type { ObjectEntry, ObjectStore } from "../format/storage.ts";
import { type Bucket, type BucketPage, conditionally, type ListedObject } from "./bucket.ts";
import type { StorageOptions } from "./storage-options.ts";
import { transferMs } from "./time-limits.ts";

/** A storage that the engine also opens. */
export interface RemoteStorage {
  readonly store: ObjectStore;
  /** Options with which the engine reaches it, in its own words; they contain secrets. */
  readonly engineOptions: StorageOptions;
  /** Options with which clients reach it themselves; they contain no secrets. Default: none. */
  readonly clientOptions?: StorageOptions;
}

/** Creates an object store on a bucket. */
export function createRemoteStore(plain: Bucket): ObjectStore {
  const bucket = withHurriedRequests(withCheckedKeys(plain));
  const prefix = `${bucket.scheme}://${bucket.name}/`;
  return {
    listsInOrder: bucket.listsInOrder,
    hasEntityTags: bucket.hasEntityTags ?? false,
    // The engine undoes the percent-encoding of locations, and cuts them at a `?` or `#`.
    uriOf: (key) => prefix + encodeURI(key).replaceAll(/[?#]/g, encodeURIComponent),
    keyOf: (uri) => decodeURIComponent(uri.slice(prefix.length)),
    get: (key) => bucket.get(key),
    getTagged: (key) => bucket.getTagged(key),
    getStream: bucket.getStream,
    getTail: (key, length) => bucket.getPart(key, { length }),
    async getRange(key, start, end) {
      if (end <= start) return (await bucket.head(key)) && new Uint8Array();
      return (await bucket.getPart(key, { start, end }))?.bytes;
    },
    head: (key) => bucket.head(key),
    async *list(directory, pageSize) {
      const within = directoryPrefix(directory);
      for await (const page of pagesOf(bucket, within, false, pageSize)) yield entriesOf(page, within);
    },
    async exists(directory) {
      for await (const { objects } of pagesOf(bucket, directoryPrefix(directory), true, 1))
        if (objects.length > 0) return true;
      return false;
    },
    create: bucket.putNew,
    put: (key, bytes) => bucket.put(key, bytes),
    putHint: (key, bytes) => bucket.put(key, bytes),
    putStream: bucket.putStream,
    async putIfAbsent(key, bytes, after, onUnclear) {
      await after;
      return conditionally(
        (attempts) => bucket.create(key, bytes, attempts),
        async () => {
          const found = await bucket.get(key);
          if (found === undefined) return "nobody's";
          return Buffer.compare(found, bytes) === 0 ? "ours" : "theirs";
        },
        onUnclear,
      );
    },
    replace: (key, bytes, tag) =>
      conditionally(
        (attempts) => bucket.replace(key, bytes, tag, attempts),
        async () => {
          const found = await bucket.getTagged(key);
          if (found?.tag === tag) return "nobody's";
          if (found !== undefined && Buffer.compare(found.bytes, bytes) === 0) return "ours";
          throw new Error(`${key} may have been replaced before another writer changed it`);
        },
      ),
    async delete(key) {
      await bucket.delete([key]);
      return true;
    },
    deleteTagged: (key, tag) => deleteTagged(bucket, key, tag),
    deleteAll: (keys) => bucket.delete(keys),
    copy: (from, to) => copyObject(bucket, from, to),
    async move(from, to) {
      if (!(await copyObject(bucket, from, to))) throw damagedFile(from, "is missing");
      await bucket.delete([from]);
    },
    async deleteDirectory(directory, { last, isFormer, owns } = {}) {
      const keys: string[] = [];
      const reused: (ListedObject & { readonly tag: string })[] = [];
      const end = `${directory}/${last}`;
      let endTag: string | undefined;
      // All keys are listed before the first is deleted, so that later objects stay.
      for await (const { objects } of pagesOf(bucket, directoryPrefix(directory), true))
        for (const object of objects) {
          const { key, tag } = object;
          if (owns !== undefined && !owns(key.slice(directoryPrefix(directory).length))) continue;
          if (key === end) endTag = tag;
          else if (tag !== undefined && REUSED.test(key)) reused.push({ ...object, tag });
          else keys.push(key);
        }
      if (isFormer !== undefined && !(await isFormer())) return false;
      await bucket.delete(keys);
      await forEachOf(reused, DELETIONS, async ({ key, tag }) => {
        await deleteTagged(bucket, key, tag);
      });
      if (endTag !== undefined && (await deleteTagged(bucket, end, endTag))) return true;
      if (last === undefined) return true;
      // Another process has written it meanwhile, and the directory may be a later one.
      const found = await bucket.getTagged(end);
      if (found !== undefined && (isFormer === undefined || (await isFormer())))
        await deleteTagged(bucket, end, found.tag);
      return true;
    },
  };
}

/**
 * Keys that a later table in the same place has again: its versions count from 1, and it has a mark. A service that deletes late, after
 * its answer was given up, must not delete those.
 */
const REUSED = /\/_versions\/[^/]+$|\/_refs\/|\/\.lance-reserved$/;

/** Number of objects that are deleted concurrently, each with its condition. */
const DELETIONS = 32;

function deleteTagged(bucket: Bucket, key: string, tag: string): Promise<boolean> {
  return conditionally(
    (attempts) => bucket.deleteTagged(key, tag, attempts),
    async () => {
      const found = await bucket.getTagged(key);
      if (found === undefined) return "ours";
      if (found.tag === tag) return "nobody's";
      throw new Error(`${key} may have been deleted before another writer wrote it`);
    },
  );
}

/** Size from which services refuse to copy an object in one request, in bytes. */
const MAX_COPY = 5e9;

async function copyObject(bucket: Bucket, from: string, to: string): Promise<boolean> {
  const info = await bucket.head(from);
  if (info === undefined) return false;
  if (info.size < MAX_COPY) {
    await bucket.copy(from, to);
    return true;
  }
  const bytes = await bucket.getStream(from);
  if (bytes !== undefined) await bucket.putStream(to, bytes);
  return bytes !== undefined;
}

/** Number of pages in a row without an entry from which on a listing fails, and their longest duration in milliseconds. */
const MAX_EMPTY_PAGES = 1_000;
const MAX_EMPTY_MS = 300_000;

/** @throws LanceError ServiceUnavailable for a listing without an end */
async function* pagesOf(
  bucket: Bucket,
  prefix: string,
  recursive: boolean,
  limit?: number,
): AsyncIterable<BucketPage> {
  const tokens = new Set<string>();
  let empty = 0;
  let since = performance.now();
  let from: string | undefined;
  for (;;) {
    const page = await bucket.page({ prefix, recursive, limit, from });
    yield page;
    from = page.next;
    if (from === undefined) return;
    empty += 1;
    if (page.objects.length + page.prefixes.length > 0) [empty, since] = [0, performance.now()];
    const isEndless = empty === MAX_EMPTY_PAGES || performance.now() - since > MAX_EMPTY_MS;
    if (tokens.has(from) || isEndless)
      throw new LanceError("ServiceUnavailable", "a listing of catalog storage does not end");
    tokens.add(from);
  }
}

function directoryPrefix(directory: string): string {
  return directory === "" ? "" : `${directory}/`;
}

function entriesOf({ objects, prefixes }: BucketPage, within: string): ObjectEntry[] {
  // Some tools put an empty object in place of a directory.
  const files = objects.filter(({ key }) => key !== within);
  return [
    ...files.map(({ tag: _, ...info }) => ({ name: info.key.slice(within.length), info })),
    ...prefixes.map((prefix) => ({ name: prefix.slice(within.length, -1), isDirectory: true })),
  ];
}

/** A segment of dots, which the library of Azure folds away as part of a URL. */
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/;

/**
 * Keeps the keys of a bucket from leading elsewhere: clients write manifests, whose paths become parts of keys.
 *
 * The operations reject keys with a segment of dots with an Error.
 */
function withCheckedKeys(bucket: Bucket): Bucket {
  return {
    ...bucket,
    get: async (key, signal) => bucket.get(checked(key), signal),
    getTagged: async (key, signal) => bucket.getTagged(checked(key), signal),
    getStream: async (key) => bucket.getStream(checked(key)),
    getPart: async (key, range, signal) => bucket.getPart(checked(key), range, signal),
    head: async (key, signal) => bucket.head(checked(key), signal),
    put: async (key, bytes, signal) => bucket.put(checked(key), bytes, signal),
    putStream: async (key, bytes, signal) => bucket.putStream(checked(key), bytes, signal),
    create: async (key, bytes, attempts) => bucket.create(checked(key), bytes, attempts),
    replace: async (key, bytes, tag, attempts) => bucket.replace(checked(key), bytes, tag, attempts),
    copy: async (from, to) => bucket.copy(checked(from), checked(to)),
    delete: async (keys) => bucket.delete(keys.map(checked)),
    deleteTagged: async (key, tag, attempts) => bucket.deleteTagged(checked(key), tag, attempts),
  };
}

function checked(key: string): string {
  if (DOT_SEGMENT.test(key)) throw new Error(`${JSON.stringify(key)} is no object key`);
  return key;
}

/** Time after which a request is hedged, in milliseconds; each further hedge waits four times as long. */
const FIRST_HEDGE_MS = 500;
const HEDGE_GROWTH = 4;
/** Maximum number of requests in flight beside the first. */
const MAX_HEDGES = 3;
/** Share of the requests that may be hedged; a few a second always may. */
const HEDGE_SHARE = 0.1;

/** A bucket with hedged requests. */
interface HurriedBucket extends Bucket {
  /** Writes an object with a unique key, so that equal bytes may land twice. */
  putNew(key: string, bytes: Uint8Array): Promise<void>;
}

/**
 * Returns a bucket that hedges small reads, and writes of new objects: if a request takes long, it is sent again
 * beside the first, because services now and then leave a request without an answer. The first answer wins and
 * cancels the other requests. A budget keeps a slow service from getting many more requests than before.
 */
function withHurriedRequests(bucket: Bucket): HurriedBucket {
  const budget = new Budget(HEDGE_SHARE);
  const unending = new AbortController().signal;

  type Make<T> = (signal: AbortSignal) => Promise<T>;

  function hurry<T>(make: Make<T>, signal = unending, bytes = 0): Promise<T> {
    budget.earn();
    return attempt(make, signal, transferMs(bytes), 0);
  }

  function attempt<T>(make: Make<T>, signal: AbortSignal, leastMs: number, hedges: number): Promise<T> {
    if (hedges === MAX_HEDGES) return make(signal);
    return hedge({
      signal,
      afterMs: leastMs + FIRST_HEDGE_MS * HEDGE_GROWTH ** hedges,
      first: make,
      second: () => (budget.take() ? (other) => attempt(make, other, leastMs, hedges + 1) : undefined),
      isAnswer: () => false,
      onWon() {},
    });
  }

  return {
    ...bucket,
    get: (key, signal) => hurry((own) => bucket.get(key, own), signal),
    getTagged: (key, signal) => hurry((own) => bucket.getTagged(key, own), signal),
    getPart: (key, range, signal) => hurry((own) => bucket.getPart(key, range, own), signal),
    head: (key, signal) => hurry((own) => bucket.head(key, own), signal),
    putNew: (key, bytes) => hurry((own) => bucket.put(key, bytes, own), undefined, bytes.byteLength),
    page: (query, signal) => hurry((own) => bucket.page(query, own), signal),
  };
}
