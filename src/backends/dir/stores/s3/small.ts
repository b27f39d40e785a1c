import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { GetObjectCommandOutput, S3Client } from "@aws-sdk/client-s3";
import type { ObjectTail, TaggedObject } from "../../format/storage.ts";
import type { Bucket, BucketPage, ByteRange, Outcome, PageQuery } from "../bucket.ts";
import { readPaced } from "../time-limits.ts";
import { infoOf, isListing, listingQuery, noResult, pageOf, readListing } from "./answers.ts";
import {
  failureOf,
  isMissing,
  isPassing,
  isThrottled,
  known,
  mayRepeat,
  type S3Access,
  toS3Error,
} from "./client.ts";
import { createPlainWay, type PlainAnswer, type PlainRequest } from "./plain-requests.ts";

/** Size from which a body goes through the library, in bytes: its transfer takes longer than what the library adds. */
const MAX_PLAIN_BYTES = 2 ** 20;

/** Longest pauses before the second attempt, in milliseconds, as in the library. */
const PAUSE = 100;
const THROTTLED_PAUSE = 500;

/** A request, and how the library makes it. */
interface Small<T> {
  readonly request: PlainRequest;
  readonly read: (answer: PlainAnswer) => T;
  readonly byLibrary: (by: S3Client, options: { requestTimeout: number }) => Promise<T>;
  /** Maximum time until the answer begins, in milliseconds. Default: that of small requests. */
  readonly limit?: number;
  readonly signal: AbortSignal | undefined;
}

/** Creates the listings of a bucket, and the requests about its single objects, nearly all of which are small. */
export function createSmallRequests(
  access: S3Access,
  Bucket: string,
): Pick<
  Bucket,
  "page" | "get" | "getTagged" | "getPart" | "head" | "put" | "create" | "replace" | "deleteTagged"
> {
  const { sdk, client, single, rest, limits } = access;
  const sendPlain = createPlainWay(access, client, Bucket);
  const sendSingle = createPlainWay(access, single, Bucket);

  /** Makes the first attempt without the library's commands, and all others with them. */
  async function attempt<T>(small: Small<T>): Promise<T> {
    const { request, read, byLibrary, limit = limits.small, signal } = small;
    const options = optionsOf(limit, signal);
    let answer: PlainAnswer | undefined;
    try {
      answer = await sendPlain(request, options);
    } catch (error) {
      if (rest === undefined || signal?.aborted || !mayRepeat(error)) throw error;
      await sleep(Math.random() * (isThrottled(error) ? THROTTLED_PAUSE : PAUSE), undefined, { signal });
      return byLibrary(rest, options);
    }
    return answer === undefined ? byLibrary(client, options) : read(answer);
  }
  /** @returns undefined for a missing object */
  function find<T>(small: Small<T>): Promise<T | undefined> {
    const { read, byLibrary } = small;
    return known(
      attempt<T | undefined>({
        ...small,
        read: (answer) => (answer.status === 404 ? undefined : read(answer)),
        byLibrary: (by, options) =>
          byLibrary(by, options).catch((error: unknown) => {
            if (isMissing(error)) return undefined;
            throw error;
          }),
      }),
    );
  }
  const getTagged = (key: string, signal: AbortSignal | undefined) =>
    find<TaggedObject>({
      request: { method: "GET", key, expected: [404] },
      read: ({ bytes, headers }) => ({ bytes, tag: headers["etag"] ?? "" }),
      async byLibrary(by, options) {
        const found = await by.send(new sdk.GetObjectCommand({ Bucket, Key: key }), options);
        return { bytes: await bytesOf(found, limits.longest), tag: found.ETag ?? "" };
      },
      signal,
    });

  /** Writes an object under a condition, in a single attempt, and returns the status of a refusal. */
  async function putIf(
    Key: string,
    Body: Uint8Array,
    attempts: number,
    [header, condition]: Condition,
  ): Promise<number | undefined> {
    const requestTimeout = limits.conditionalWrite(Body.byteLength, attempts);
    const headers = { ...BYTES, ...header };
    const request: PlainRequest = { method: "PUT", key: Key, headers, body: Body, expected: [409, 412] };
    const isPlain = Body.byteLength <= MAX_PLAIN_BYTES;
    const answer = isPlain ? await sendSingle(request, { requestTimeout }) : undefined;
    if (answer !== undefined) return answer.status;
    await single.send(new sdk.PutObjectCommand({ Bucket, Key, Body, ...condition }), { requestTimeout });
    return undefined;
  }
  async function put(Key: string, Body: Uint8Array, signal?: AbortSignal): Promise<void> {
    const limit = limits.write(Body.byteLength);
    async function byLibrary(by: S3Client, options: { requestTimeout: number }): Promise<void> {
      await by.send(new sdk.PutObjectCommand({ Bucket, Key, Body }), options);
    }
    if (Body.byteLength > MAX_PLAIN_BYTES) return known(byLibrary(client, optionsOf(limit, signal)));
    const request: PlainRequest = { method: "PUT", key: Key, headers: BYTES, body: Body };
    return known(attempt({ request, read() {}, byLibrary, limit, signal }));
  }
  /** Whether the service has written a page that only the library reads: it writes them all in this way. */
  let isUnusual = false;
  async function page(query: PageQuery, signal?: AbortSignal): Promise<BucketPage> {
    const { prefix: Prefix, recursive, limit: MaxKeys, from: ContinuationToken } = query;
    const Delimiter = recursive ? undefined : "/";
    async function byLibrary(by: S3Client, options: { requestTimeout: number }): Promise<BucketPage> {
      const fields = { Bucket, Prefix, Delimiter, MaxKeys, ContinuationToken };
      const found = await by.send(new sdk.ListObjectsV2Command(fields), options);
      if (!isListing(found)) throw noResult();
      return pageOf(found);
    }
    const byLibraryAlone = () => known(byLibrary(client, optionsOf(limits.small, signal)));
    if (isUnusual) return byLibraryAlone();
    const request: PlainRequest = { method: "GET", query: listingQuery(query) };
    const read = ({ bytes }: PlainAnswer) => readListing(bytes.toString());
    const found = await known(attempt<BucketPage | undefined>({ request, read, byLibrary, signal }));
    if (found !== undefined) return found;
    const unusual = await byLibraryAlone();
    isUnusual = true;
    return unusual;
  }
  return {
    page,
    get: async (key, signal) => (await getTagged(key, signal))?.bytes,
    getTagged,
    getPart: (key, range, signal) => {
      const Range = headerOf(range);
      const maxBytes = "length" in range ? range.length : range.end - range.start;
      return find({
        request: { method: "GET", key, headers: { range: Range }, maxBytes, expected: [404, 416] },
        read: ({ status, headers, bytes }) =>
          status === 416 ? BEYOND : partOf(bytes, range, headers["content-range"]),
        async byLibrary(by, options) {
          try {
            const found = await by.send(new sdk.GetObjectCommand({ Bucket, Key: key, Range }), options);
            const most = found.ContentRange === undefined ? undefined : maxBytes;
            return partOf(await bytesOf(found, limits.longest, most), range, found.ContentRange);
          } catch (error) {
            if (failureOf(error).status === 416) return BEYOND;
            throw error;
          }
        },
        signal,
      });
    },
    head: (key, signal) =>
      find({
        request: { method: "HEAD", key, expected: [404] },
        read: ({ headers }) =>
          infoOf(key, Number(headers["content-length"] ?? 0), {
            ETag: headers["etag"],
            LastModified: dateOf(headers["last-modified"]),
          }),
        async byLibrary(by, options) {
          const found = await by.send(new sdk.HeadObjectCommand({ Bucket, Key: key }), options);
          return infoOf(key, found.ContentLength, found);
        },
        signal,
      }),
    put,
    create: (key, bytes, attempts) => outcomeOf(putIf(key, bytes, attempts, UNLESS_EXISTING)),
    replace: (key, bytes, tag, attempts) =>
      outcomeOfTagged(putIf(key, bytes, attempts, [{ "if-match": tag }, { IfMatch: tag }]), () =>
        put(key, bytes),
      ),
    deleteTagged(Key, IfMatch, attempts) {
      const requestTimeout = limits.conditionalWrite(0, attempts);
      const deleteIf = (condition: { readonly IfMatch?: string }, by: S3Client) =>
        by
          .send(new sdk.DeleteObjectCommand({ Bucket, Key, ...condition }), { requestTimeout })
          .then(() => undefined);
      return outcomeOfTagged(deleteIf({ IfMatch }, single), () => known(deleteIf({}, client)));
    },
  };
}

function optionsOf(requestTimeout: number, abortSignal: AbortSignal | undefined) {
  return { requestTimeout, ...(abortSignal && { abortSignal }) };
}

/** The type that the library gives to bytes. */
const BYTES = { "content-type": "application/octet-stream" };

/** The part of an object from beyond its end. */
const BEYOND = { bytes: new Uint8Array(), size: 0 };

function headerOf(range: ByteRange): string {
  return "length" in range ? `bytes=-${range.length}` : `bytes=${range.start}-${range.end - 1}`;
}

/** @param contentRange undefined for a service that ignores ranges and sends the whole object */
function partOf(bytes: Uint8Array, range: ByteRange, contentRange: string | undefined): ObjectTail {
  if (contentRange !== undefined)
    return { bytes, size: Number(/\/(\d+)$/.exec(contentRange)?.[1] ?? bytes.byteLength) };
  const part = "length" in range ? bytes.subarray(-range.length) : bytes.subarray(range.start, range.end);
  return { bytes: part, size: bytes.byteLength };
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

function bytesOf({ Body }: GetObjectCommandOutput, limit: number, maxBytes?: number): Promise<Uint8Array> {
  return readPaced(Body as Readable, limit, maxBytes);
}

/** A condition, as a header and in the words of the library. */
type Condition = readonly [
  header: Readonly<Record<string, string>>,
  field: { readonly IfNoneMatch: string } | { readonly IfMatch: string },
];

/** The condition that no object exists. */
const UNLESS_EXISTING: Condition = [{ "if-none-match": "*" }, { IfNoneMatch: "*" }];

/** Meanings of the statuses of conditional writes. */
const OUTCOMES: Readonly<Record<number, "refused" | "busy">> = { 409: "busy", 412: "refused" };

/** Returns the outcome of an attempt under a condition, which resolves to the status of a refusal or undefined. */
async function outcomeOf(attempt: Promise<number | undefined>): Promise<Outcome> {
  try {
    return OUTCOMES[(await attempt) ?? 0] ?? "done";
  } catch (error) {
    const outcome = OUTCOMES[failureOf(error).status ?? 0];
    if (outcome !== undefined) return outcome;
    if (isPassing(error)) return { unclear: toS3Error(error) };
    throw toS3Error(error);
  }
}

/**
 * Returns the outcome of an attempt on an object with a tag.
 *
 * @param plainly makes the change without the condition, for a service that refuses the condition as unknown
 */
function outcomeOfTagged(
  attempt: Promise<number | undefined>,
  plainly: () => Promise<unknown>,
): Promise<Outcome> {
  return outcomeOf(
    attempt.catch(async (error: unknown) => {
      if (isMissing(error)) return 412;
      if (failureOf(error).status !== 501) throw error;
      await plainly();
      return undefined;
    }),
  );
}
