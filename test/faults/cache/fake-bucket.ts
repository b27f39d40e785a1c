import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Upstream, UpstreamAnswer } from "../../../src/backends/dir/cache/upstream.ts";
import type { Random } from "../../support/random.ts";

/** An object of a bucket. */
export interface StoredBytes {
  readonly bytes: Buffer;
  readonly tag: string;
}

/** A bucket in memory that answers reads as an S3 service does, and fails as one does. */
export interface FakeBucket {
  readonly upstream: Upstream;
  /** The objects, by key. */
  readonly objects: Map<string, StoredBytes>;
  /** Share of the answers that fail, of 100. */
  faults: number;
}

const MODIFIED = new Date(1_700_000_000_000).toUTCString();

/** Returns bytes that are different for each name. */
export function bytesOf(name: string, size: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(size / 64) }, (_, index) =>
    createHash("sha512").update(`${name} ${index}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, size);
}

/** Creates a bucket whose failures are drawn. */
export function createFakeBucket(random: Random): FakeBucket {
  const bucket: FakeBucket = {
    objects: new Map(),
    faults: 0,
    upstream: {
      limits: { small: 1_000, longest: 1_000 } as Upstream["limits"],
      addressOf: async (name) => `http://bucket.test ${name}`,
      close() {},
      async send({ key, headers }) {
        // Another call may go on before the answer begins.
        await new Promise((resolve) => setImmediate(resolve));
        const found = bucket.objects.get(key);
        if (found === undefined) return answerOf(404, {}, [Buffer.from("<Code>NoSuchKey</Code>")]);
        const answer = rangeOf(found, headers["range"]);
        return random.below(100) < bucket.faults ? broken(answer, random) : answer.whole();
      },
    },
  };
  return bucket;
}

function answerOf(status: number, headers: Record<string, string>, pieces: Iterable<Buffer>): UpstreamAnswer {
  return { status, headers, body: Readable.from(pieces, { objectMode: true }) };
}

function rangeOf({ bytes, tag }: StoredBytes, range: string | undefined) {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  const size = bytes.length;
  const start = first === "" ? Math.max(0, size - Number(last || size)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  const part = bytes.subarray(start, end);
  const headers = {
    etag: tag,
    "last-modified": MODIFIED,
    "content-length": String(part.length),
    ...(range !== undefined && { "content-range": `bytes ${start}-${end - 1}/${size}` }),
  };
  const status = range === undefined ? 200 : 206;
  const isThere = range === undefined || start < size;
  return {
    part,
    headers,
    status,
    whole: () => (isThere ? answerOf(status, headers, piecesOf(part)) : answerOf(416, {}, [])),
  };
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 50) yield bytes.subarray(at, at + 50);
}

/** Returns an answer as a service, a proxy or a cut connection spoils it. */
function broken({ part, headers, status }: ReturnType<typeof rangeOf>, random: Random): UpstreamAnswer {
  switch (random.below(4)) {
    case 0:
      return answerOf(503, {}, [Buffer.from("<Code>SlowDown</Code>")]);
    case 1:
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    case 2: {
      const { etag: _, ...untagged } = headers;
      return answerOf(status, untagged, piecesOf(part));
    }
    default:
      return answerOf(status, headers, cutPieces(part, random.below(part.length + 1)));
  }
}

function* cutPieces(bytes: Buffer, end: number): Generator<Buffer> {
  yield* piecesOf(bytes.subarray(0, end));
  throw Object.assign(new Error("aborted"), { code: "ECONNRESET" });
}
