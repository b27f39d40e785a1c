import { pacedBody, readPaced } from "../stores/time-limits.ts";
import type { BlockCache, CachedObject } from "./block-cache.ts";
import { type CacheableKind, hasCustomerKey } from "./cacheable.ts";
import type { CacheCounters } from "./counters.ts";
import { MAX_TAG_BYTES, type ObjectFacts } from "./record.ts";
import { type AskedRange, parseContentRange, rangeWithin } from "./s3-request.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

/** A read of a part of an object. */
export interface CachedRead {
  readonly upstream: Upstream;
  readonly bucket: string;
  readonly key: string;
  readonly kind: CacheableKind;
  /** Name of the object in the cache. */
  readonly name: string;
  /** Default: the whole object. */
  readonly range: AskedRange | undefined;
  /** Headers of the protocol that go with each request to the service. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Bytes of an object. */
export interface ReadResult {
  readonly facts: CachedObject;
  readonly start: number;
  readonly end: number;
  /** Yields the bytes; throws a {@link RefusedError} or the error of the connection. */
  readonly bytes: AsyncGenerator<Buffer>;
  /** Whether nothing came from the bucket, once all bytes are read. */
  isHit(): boolean;
}

/** An answer of the service that is not the bytes that were asked for. */
export class RefusedError extends Error {
  readonly status: number;
  readonly headers: UpstreamAnswer["headers"];
  readonly body: Buffer;

  constructor(status: number, headers: UpstreamAnswer["headers"], body: Buffer) {
    super(`the service answers ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/** The object of a name was replaced while it was read. */
class ReplacedError extends Error {}

/** Largest number of blocks that a request to the service asks for. */
const RUN_BLOCKS = 64;

/** Attempts at the bytes of a request. */
const ATTEMPTS = 3;

/** Reads objects through a cache. */
export type ReadThrough = (read: CachedRead) => Promise<ReadResult | undefined>;

/**
 * Creates a reader of immutable objects, which answers from the cache and fetches what is missing: neighbouring blocks by one request, and
 * each block once, however many readers want it.
 *
 * It returns undefined for a range that the object does not have, or an answer of the service that cannot be kept; the caller then passes
 * the request on.
 */
export function createReadThrough(cache: BlockCache, counters: CacheCounters): ReadThrough {
  const { blockBytes } = cache;
  /** First reads of objects about which nothing is known. */
  const opening = new Map<string, Promise<unknown>>();

  const blockEnd = ({ size }: ObjectFacts, index: number) => Math.min(size, (index + 1) * blockBytes);

  /** Marks blocks as being read; returns what takes their bytes. */
  function expect(object: CachedObject, first: number, last: number) {
    const blocks = Array.from({ length: last - first + 1 }, () => Promise.withResolvers<Buffer>());
    for (const [at, { promise }] of blocks.entries()) {
      object.loading.set(first + at, promise);
      promise.catch(() => {});
    }
    let next = first;
    const finish = () => {
      object.loading.delete(next);
      cache.release(object);
      next += 1;
      return blocks[next - 1 - first];
    };
    return {
      object,
      last,
      /** The first block that is still missing. */
      get next() {
        return next;
      },
      deliver(bytes: Buffer) {
        cache.put(object, next, bytes);
        finish()?.resolve(bytes);
      },
      fail(error: unknown) {
        while (next <= last) finish()?.reject(error);
      },
    };
  }
  type Expected = ReturnType<typeof expect>;

  /** Cuts the body of an answer, from `start` to `end` in the object, into the blocks that are expected. */
  async function cut(
    body: AsyncIterable<Uint8Array>,
    [start, end]: readonly [number, number],
    expected: Expected,
  ): Promise<void> {
    const { object, last } = expected;
    let position = start;
    let block: Buffer | undefined;
    for await (const bytes of body) {
      const piece = bytes as Buffer;
      counters.add("fetchedBytes", piece.length);
      let at = 0;
      while (at < piece.length && expected.next <= last) {
        const blockStart = expected.next * blockBytes;
        // Bytes before the first block, of which the answer may have some.
        const skipped = Math.min(piece.length - at, Math.max(0, blockStart - position));
        at += skipped;
        position += skipped;
        if (at === piece.length) break;
        block ??= Buffer.allocUnsafeSlow(blockEnd(object, expected.next) - blockStart);
        const taken = piece.copy(block, position - blockStart, at);
        at += taken;
        position += taken;
        if (position < blockStart + block.length) continue;
        expected.deliver(block);
        block = undefined;
      }
      // The connection can be used again only if the rest is read, which may be long.
      if (expected.next > last && end - position > blockBytes) return;
    }
    if (expected.next <= last) throw new Error("the service ended an answer early");
  }

  /** Fetches blocks that nobody has and nobody fetches. */
  async function fetchRun(
    read: CachedRead,
    object: CachedObject,
    first: number,
    last: number,
  ): Promise<void> {
    const expected = expect(object, first, last);
    counters.add("misses", last - first + 1);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetchRest(read, expected);
      } catch (error) {
        const isFinal = error instanceof RefusedError || error instanceof ReplacedError;
        if (!isFinal && attempt < ATTEMPTS) continue;
        counters.add("storeErrors", 1);
        return expected.fail(error);
      }
    }
  }
  async function fetchRest(read: CachedRead, expected: Expected): Promise<void> {
    const { object, next, last } = expected;
    const stop = new AbortController();
    try {
      const range = `bytes=${next * blockBytes}-${blockEnd(object, last) - 1}`;
      const answer = await get(read, range, stop.signal);
      const part = partOf(answer);
      if (part === undefined) throw await refusalOf(answer, read.upstream.limits.longest);
      if (part.tag !== object.tag || part.size !== object.size || part.start > next * blockBytes) {
        cache.forget(object.name);
        throw new ReplacedError();
      }
      const body = pacedBody(answer.body, read.upstream.limits.longest);
      await cut(body, [part.start, part.end], expected);
    } catch (error) {
      stop.abort();
      throw error;
    }
  }
  function get(read: CachedRead, range: string | undefined, signal: AbortSignal) {
    const { upstream, bucket, key } = read;
    const headers = { ...read.headers, ...(range !== undefined && { range }) };
    return upstream.send({ method: "GET", bucket, key, headers }, signal, upstream.limits.small);
  }

  /** Asks for an object of which nothing is known, as the first reader does; returns once its facts are known. */
  async function openObject(read: CachedRead): Promise<CachedObject> {
    const { range, name, kind, upstream } = read;
    const stop = new AbortController();
    const drops = cache.dropsOf(name);
    const answer = await get(read, firstRange(range), stop.signal);
    const part = partOf(answer);
    // A writer has replaced the object while the answer was in flight, so nobody knows which one it has.
    const isDropped = cache.dropsOf(name) !== drops;
    if (part === undefined || isDropped) throw await refusalOf(answer, upstream.limits.longest);
    const { tag, size, modified, start, end } = part;
    const object = cache.open({ name, kind, tag, size, modified });
    const first = Math.ceil(start / blockBytes);
    const whole = end === size ? Math.ceil(size / blockBytes) : Math.floor(end / blockBytes);
    let last = Math.min(whole, first + RUN_BLOCKS) - 1;
    // A disk may have been found meanwhile.
    for (let index = first; index <= last; index += 1)
      if (cache.has(object, index) || object.loading.has(index)) last = index - 1;
    const expected = expect(object, first, last);
    counters.add("misses", last - first + 1);
    const body = pacedBody(answer.body, upstream.limits.longest);
    cut(body, [start, end], expected).catch((error: unknown) => {
      stop.abort();
      expected.fail(error);
    });
    return object;
  }
  /** Returns a range that has all blocks of the asked one whole, whatever the size of the object is. */
  function firstRange(range: AskedRange | undefined): string | undefined {
    if (range === undefined) return undefined;
    if ("suffix" in range) return `bytes=-${range.suffix + blockBytes - 1}`;
    const first = Math.floor(range.start / blockBytes);
    const wanted = range.last === undefined ? first + RUN_BLOCKS - 1 : Math.floor(range.last / blockBytes);
    const last = Math.min(wanted, first + RUN_BLOCKS - 1);
    return `bytes=${first * blockBytes}-${(last + 1) * blockBytes - 1}`;
  }
  /** Returns an object that is known, or asks for it; several first readers ask once. */
  async function objectOf(read: CachedRead): Promise<{ object: CachedObject; asked: boolean }> {
    for (;;) {
      const object = cache.find(read.name);
      if (object !== undefined) return { object, asked: false };
      const other = opening.get(read.name);
      if (other === undefined) break;
      await other.catch(() => {});
    }
    const own = openObject(read);
    opening.set(read.name, own);
    try {
      return { object: await own, asked: true };
    } finally {
      opening.delete(read.name);
    }
  }

  async function readOrFetch(read: CachedRead, object: CachedObject, index: number, miss: () => void) {
    const bytes = await cache.read(object, index);
    if (bytes !== undefined) return bytes;
    miss();
    if (!object.loading.has(index)) void fetchRun(read, object, index, index);
    return object.loading.get(index) as Promise<Buffer>;
  }
  /** Returns the bytes of some blocks, all of which are in flight. */
  function begin(read: CachedRead, object: CachedObject, first: number, last: number, miss: () => void) {
    const found: Promise<Buffer>[] = [];
    let missing = 0;
    const fetchMissing = (before: number) => {
      if (missing === 0) return;
      void fetchRun(read, object, before - missing, before - 1);
      missing = 0;
    };
    for (let index = first; index <= last; index += 1) {
      const isLoading = object.loading.has(index);
      if (!isLoading && !cache.has(object, index)) missing += 1;
      else fetchMissing(index);
      if (isLoading) counters.add("shared", 1);
    }
    fetchMissing(last + 1);
    for (let index = first; index <= last; index += 1) {
      const loading = object.loading.get(index);
      if (loading !== undefined) miss();
      found.push(loading ?? readOrFetch(read, object, index, miss));
    }
    for (const each of found) each.catch(() => {});
    return found;
  }
  async function* bytesOf(
    read: CachedRead,
    object: CachedObject,
    { start, end }: { readonly start: number; readonly end: number },
    miss: () => void,
  ): AsyncGenerator<Buffer> {
    const lastBlock = Math.ceil(end / blockBytes) - 1;
    for (let first = Math.floor(start / blockBytes); first <= lastBlock; first += RUN_BLOCKS) {
      const last = Math.min(lastBlock, first + RUN_BLOCKS - 1);
      for (const [at, found] of begin(read, object, first, last, miss).entries()) {
        const offset = (first + at) * blockBytes;
        const bytes = await found;
        yield bytes.subarray(Math.max(0, start - offset), Math.min(bytes.length, end - offset));
      }
    }
  }

  return async (read) => {
    for (let attempt = 1; ; attempt += 1) {
      const { object, asked } = await objectOf(read);
      const within = rangeWithin(read.range, object.size);
      if (within === undefined || object.size === 0) {
        cache.release(object);
        return undefined;
      }
      let isHit = !asked;
      const bytes = bytesOf(read, object, within, () => {
        isHit = false;
      });
      const result = { facts: object, ...within, isHit: () => isHit };
      try {
        // An answer must not begin before there is something to answer.
        const { value: head = Buffer.alloc(0) } = await bytes.next();
        return { ...result, bytes: withFirst(head, bytes) };
      } catch (error) {
        if (!(error instanceof ReplacedError) || attempt >= ATTEMPTS) throw error;
      }
    }
  };
}

async function* withFirst(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}

/** Returns the part of an object in an answer; undefined for an answer that cannot be kept. */
function partOf({ status, headers }: UpstreamAnswer) {
  const { etag: tag, "last-modified": modified = "", "content-encoding": encoding } = headers;
  if (tag === undefined || tag.startsWith("W/") || tag.length > MAX_TAG_BYTES || encoding) return undefined;
  if (hasCustomerKey(headers)) return undefined;
  const facts = { tag, modified: Date.parse(modified) };
  if (Number.isNaN(facts.modified)) return undefined;
  if (status === 206) {
    const range = parseContentRange(headers["content-range"]);
    return range && { ...range, ...facts };
  }
  const size = Number(headers["content-length"] ?? Number.NaN);
  return status === 200 && Number.isSafeInteger(size) ? { start: 0, end: size, size, ...facts } : undefined;
}

/** Largest refusal that is passed on, in bytes. */
const MAX_REFUSAL_BYTES = 65_536;

async function refusalOf({ status, headers, body }: UpstreamAnswer, limit: number): Promise<Error> {
  if (status >= 300)
    return new RefusedError(status, headers, await readPaced(body, limit, MAX_REFUSAL_BYTES));
  body.destroy();
  return new UncacheableError("the service does not say what the cache must know");
}

/** An answer without what the cache has to know, so that requests for the object are passed on. */
export class UncacheableError extends Error {}
