import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import type { BlockCache } from "./block-cache.ts";
import { cacheableKindOf, hasCustomerKey } from "./cacheable.ts";
import { MAX_TAG_BYTES } from "./record.ts";
import type { UpstreamAnswer, UpstreamRequest } from "./upstream.ts";

/** Effects of a request that writes on the cache. */
export interface WrittenObjects {
  /** The body, if it is looked at on its way. Default: the body of the request. */
  readonly body: Readable | undefined;
  /** Drops what the request may change, before it is sent. */
  begin(): Promise<void>;
  /** Drops it again, since others may have read it meanwhile, and keeps what was written. */
  end(answer: UpstreamAnswer): Promise<void>;
}

/** Size up to which written objects go into the cache at once, in bytes; longer ones follow when they are read. */
const MAX_KEPT_BYTES = 16 * 2 ** 20;

/** Largest request to delete many objects, in bytes. */
const MAX_DELETION_BYTES = 4 * 2 ** 20;

/**
 * Watches a request that writes.
 *
 * @param nameIn returns the name of a key in the cache
 */
export function noteWrites(
  cache: BlockCache,
  { method, key, query, headers }: UpstreamRequest,
  incoming: IncomingMessage,
  nameIn: (key: string) => Promise<string>,
): WrittenObjects {
  const kind = cacheableKindOf(key);
  const length = Number(incoming.headers["content-length"] ?? Number.NaN);
  const isPlainPut =
    method === "PUT" && Object.keys(query ?? {}).length === 0 && !("x-amz-copy-source" in headers);
  // The service takes the framing of pieces, with their checksums, off the body.
  const isFramed =
    "content-encoding" in headers || headers["x-amz-content-sha256"]?.startsWith("STREAMING-") === true;
  const isWhole = isPlainPut && !isFramed && !hasCustomerKey(headers);
  const isKept = isWhole && kind !== undefined && length > 0 && length <= MAX_KEPT_BYTES;
  const isDeletion =
    method === "POST" && query !== undefined && "delete" in query && length <= MAX_DELETION_BYTES;
  const pieces: Buffer[] = [];
  let body: Readable | undefined;
  if (isKept || isDeletion) {
    const copy = new PassThrough();
    // The request to the service has ended by then, and an error without a listener would end the thread.
    copy.on("error", () => {});
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("error", (error) => copy.destroy(error));
    body = incoming.pipe(copy);
  }

  async function drop(): Promise<void> {
    if (kind !== undefined) cache.forget(await nameIn(key));
    if (!isDeletion) return;
    for (const [, escaped = ""] of Buffer.concat(pieces)
      .toString()
      .matchAll(/<Key>(.*?)<\/Key>/gs)) {
      const each = unescapeXml(escaped);
      if (cacheableKindOf(each) !== undefined) cache.forget(await nameIn(each));
    }
  }
  return {
    body,
    begin: drop,
    async end({ status, headers: answered }) {
      await drop();
      const { etag: tag, date } = answered;
      if (!isKept || kind === undefined || status !== 200) return;
      if (tag === undefined || tag.startsWith("W/") || tag.length > MAX_TAG_BYTES) return;
      const bytes = Buffer.concat(pieces);
      if (bytes.length !== length) return;
      // The service does not say when it was written; this is at most the time of the request later.
      const modified = Date.parse(date ?? "") || Date.now();
      const object = cache.open({ name: await nameIn(key), kind, tag, size: length, modified });
      for (let index = 0; index * cache.blockBytes < length; index += 1) {
        const start = index * cache.blockBytes;
        const block = Buffer.allocUnsafeSlow(Math.min(cache.blockBytes, length - start));
        bytes.copy(block, 0, start);
        cache.put(object, index, block);
      }
      cache.release(object);
    },
  };
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescapeXml(text: string): string {
  return text.replaceAll(/&(?:(lt|gt|quot|apos|amp)|#(\d+)|#x([0-9a-f]+));/gi, (_, name, decimal, hex) =>
    name !== undefined
      ? (ENTITIES[String(name).toLowerCase()] ?? "")
      : String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)),
  );
}
