import type { IncomingMessage, ServerResponse } from "node:http";
import { putNewest } from "../../../runtime/collections.ts";
import type { BlockCache } from "./block-cache.ts";
import { hasCustomerKey } from "./cacheable.ts";
import type { CacheCounters } from "./counters.ts";
import type { ObjectFacts } from "./record.ts";
import { parseRange, rangeWithin } from "./s3-request.ts";

/** Answers to reads whose blocks are in memory. */
export interface KeptAnswers {
  /** Notes which object of the cache a client's request target names. */
  note(accessKeyId: string, target: string, name: string): void;
  /**
   * Answers a read with a single write; the engine reads many small ranges for each search.
   *
   * @returns whether it has; if not, nothing has been written
   */
  answer(accessKeyId: string, incoming: IncomingMessage, response: ServerResponse): boolean;
}

/** Maximum number of request targets that are remembered. */
const MAX_TARGETS = 10_000;

/** Most blocks of an answer; a longer one is sent in pieces, as fast as its reader takes them. */
const MAX_BLOCKS = 8;

/** Conditions of reads, which the service decides. */
const CONDITIONS = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

/** Whether a read is answered with the same bytes for every client: it has no condition and no key of its own. */
export function isPlainRead(headers: IncomingMessage["headers"]): boolean {
  return !CONDITIONS.some((name) => name in headers) && !hasCustomerKey(headers);
}

/** Creates the answers from the memory of a cache. */
export function createKeptAnswers(cache: BlockCache, counters: CacheCounters): KeptAnswers {
  const { blockBytes } = cache;
  const targets = new Map<string, string>();
  const keyOf = (accessKeyId: string, target: string) => `${accessKeyId} ${target}`;
  return {
    note(accessKeyId, target, name) {
      putNewest(targets, keyOf(accessKeyId, target), name, MAX_TARGETS);
    },
    answer(accessKeyId, { method, url = "", headers }, response) {
      if (method !== "GET") return false;
      const name = targets.get(keyOf(accessKeyId, url));
      const object = name === undefined ? undefined : cache.find(name);
      const range = headers.range === undefined ? undefined : parseRange(headers.range);
      const isUnclear = headers.range !== undefined && range === undefined;
      if (object === undefined || isUnclear || !isPlainRead(headers)) return false;
      const within = rangeWithin(range, object.size);
      if (within === undefined || within.start === within.end) return false;
      const started = performance.now();
      const { start, end } = within;
      const [first, last] = [Math.floor(start / blockBytes), Math.ceil(end / blockBytes) - 1];
      const blocks = last - first < MAX_BLOCKS ? cache.readMemory(object, first, last) : undefined;
      if (blocks === undefined) return false;
      writeHeadOf(response, object, within, range !== undefined);
      response.cork();
      for (const [at, block] of blocks.entries()) {
        const offset = (first + at) * blockBytes;
        response.write(block.subarray(Math.max(0, start - offset), Math.min(block.length, end - offset)));
      }
      response.end();
      counters.add("hitBytes", end - start);
      counters.time("hit", (performance.now() - started) / 1000);
      return true;
    },
  };
}

/** Begins the answer to a read of a part of an object, or of all of it. */
export function writeHeadOf(
  response: ServerResponse,
  object: ObjectFacts,
  { start, end }: { readonly start: number; readonly end: number },
  isPart: boolean,
): void {
  response.writeHead(isPart ? 206 : 200, {
    ...headersOf(object),
    "content-length": end - start,
    ...(isPart && { "content-range": `bytes ${start}-${end - 1}/${object.size}` }),
  });
}

/** Headers of the objects that are known. */
const headersOfObjects = new WeakMap<ObjectFacts, Readonly<Record<string, string>>>();

/** Returns the headers that say what an object is. */
export function headersOf(object: ObjectFacts): Readonly<Record<string, string>> {
  const known = headersOfObjects.get(object);
  if (known !== undefined) return known;
  const headers = {
    etag: object.tag,
    "last-modified": new Date(object.modified).toUTCString(),
    "accept-ranges": "bytes",
    "content-type": "application/octet-stream",
  };
  headersOfObjects.set(object, headers);
  return headers;
}
