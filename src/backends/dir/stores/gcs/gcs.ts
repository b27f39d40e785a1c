import type { File, StorageOptions as GcsOptions } from "@google-cloud/storage";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadLibrary } from "../../../load-library.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { ObjectInfo } from "../../format/storage.ts";
import { bounded } from "../bounded-requests.ts";
import { boundsOf, inPieces, type ListedObject, type Outcome } from "../bucket.ts";
import { isTransient, toStoreError, withErrors } from "../failure.ts";
import { createRemoteStore, type RemoteStorage } from "../remote-store.ts";
import type { StorageOptions } from "../storage-options.ts";
import { createTimeLimits, pacedBody, readPaced, type TimeLimits } from "../time-limits.ts";
import { failureOf, openBody, optionReader, readServiceAccount, tokenAccess } from "./access.ts";

/** Longest duration of a request with its retries, in seconds, and their number. */
const TOTAL_SECONDS = 60;
const MAX_RETRIES = 3;

/** Longest duration of a single request, in milliseconds. */
const REQUEST_TIMEOUT = 30_000;

/** Objects do not belong to a project. Without a value, the library starts `gcloud` to find one, which takes seconds. */
const NO_PROJECT = "none";

/** Number of concurrent deletes; the service has no batch request. */
const DELETES = 32;

/**
 * Creates an object store on a bucket of Google Cloud Storage. Credentials that are not options are those of the
 * machine.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createGcsStore(name: string, options: StorageOptions): Promise<RemoteStorage> {
  const limits = createTimeLimits(timeoutOf(options));
  const { Storage, IdempotencyStrategy } = await loadLibrary(
    "gs://",
    "@google-cloud/storage",
    () => import("@google-cloud/storage"),
  );
  // Otherwise the library turns repetitions off for everything that happens beside a plain write, and now and then for good.
  const idempotencyStrategy = IdempotencyStrategy.RetryAlways;
  const access = await tokenAccess(options);
  const storage = new Storage({
    ...toGcsOptions(options, { maxRetries: MAX_RETRIES, idempotencyStrategy }),
    ...access,
  });
  const host = new URL(storage.apiEndpoint).hostname;
  const bucket = storage.bucket(name);
  const single = new Storage({
    ...toGcsOptions(options, { autoRetry: false, idempotencyStrategy }),
    ...access,
  }).bucket(name);

  /** Makes a request that the library repeats. */
  function repeated<T>(make: () => Promise<T>, limit = limits.small, signal?: AbortSignal): Promise<T> {
    return bounded({ host, limit: (1 + MAX_RETRIES) * limit, signal }, make);
  }
  /** Reads an object, or a part of it. */
  function read(key: string, signal?: AbortSignal, part?: Part): Promise<Uint8Array | undefined> {
    const body = openBody({ host, file: bucket.file(key) }, part, signal);
    return orMissing(readPaced(body, limits.longest, part && part.end - part.start + 1));
  }
  function metadataOf(file: File, signal?: AbortSignal) {
    return orMissing(repeated(() => file.getMetadata(), limits.small, signal));
  }
  /** Writes an object in place of a generation, where 0 means none, in a single attempt. */
  function putIf(key: string, bytes: Uint8Array, generation: string | number, attempts: number) {
    const preconditionOpts = { ifGenerationMatch: generation };
    const save = () => single.file(key).save(Buffer.from(bytes), { resumable: false, preconditionOpts });
    return bounded({ host, limit: limits.conditionalWrite(bytes.byteLength, attempts) }, save);
  }
  const store = createRemoteStore({
    scheme: "gs",
    name,
    listsInOrder: true,
    get: read,
    async getTagged(key, signal) {
      const metadata = await metadataOf(bucket.file(key), signal);
      // The bytes may be newer than the tag: then the object has changed since, as a change under the tag finds.
      const bytes = metadata && (await read(key, signal));
      return bytes && { bytes, tag: String(metadata[0].generation) };
    },
    async getStream(key) {
      const file = bucket.file(key);
      const [found] = await known(repeated(() => file.exists()));
      return found ? withErrors(pacedBody(openBody({ host, file }), limits.longest), toGcsError) : undefined;
    },
    async getPart(key, range, signal) {
      const metadata = await metadataOf(bucket.file(key), signal);
      if (metadata === undefined) return undefined;
      const size = Number(metadata[0].size ?? 0);
      const { start, end } = boundsOf(range, size);
      if (start >= end) return { size, bytes: new Uint8Array() };
      const bytes = await read(key, signal, { start, end: end - 1 });
      return bytes && { size, bytes };
    },
    async head(key, signal) {
      const file = bucket.file(key);
      return (await metadataOf(file, signal)) && infoOf(file);
    },
    async page({ prefix, recursive, limit: maxResults, from: pageToken }, signal) {
      const query = {
        prefix,
        autoPaginate: false,
        ...(maxResults !== undefined && { maxResults }),
        ...(pageToken !== undefined && { pageToken }),
        ...(!recursive && { delimiter: "/" }),
      };
      const request = repeated(() => bucket.getFiles(query), limits.small, signal);
      const [files, next, answer] = (await known(request)) as unknown as Listing;
      return { objects: files.map(listedOf), prefixes: answer?.prefixes ?? [], next: next?.pageToken };
    },
    put(key, bytes, signal) {
      const save = () => bucket.file(key).save(Buffer.from(bytes), { resumable: false });
      return known(repeated(save, limits.write(bytes.byteLength), signal));
    },
    putStream: (key, bytes, signal) =>
      known(uploadStream(bucket.file(key), bytes, { limits, repeated, signal })),
    create: (key, bytes, attempts) => outcomeOf(putIf(key, bytes, 0, attempts)),
    replace: (key, bytes, tag, attempts) => outcomeOf(putIf(key, bytes, tag, attempts), [404, 412]),
    async copy(from, to) {
      await known(repeated(() => bucket.file(from).copy(bucket.file(to)), limits.longest));
    },
    async delete(keys) {
      await forEachOf(keys, DELETES, (key) =>
        known(repeated(() => bucket.file(key).delete({ ignoreNotFound: true }))),
      );
    },
    deleteTagged(key, ifGenerationMatch, attempts) {
      const remove = () => single.file(key).delete({ ifGenerationMatch });
      const limit = limits.conditionalWrite(0, attempts);
      return outcomeOf(bounded({ host, limit }, remove), [404, 412]);
    },
  });
  return { store, engineOptions: options };
}

/** A part of an object, from `start` to `end`, both included. */
interface Part {
  readonly start: number;
  readonly end: number;
}

type Listing = readonly [
  files: File[],
  next: { readonly pageToken?: string } | null | undefined,
  answer: { readonly prefixes?: string[] } | undefined,
];

function timeoutOf(options: StorageOptions): number {
  return optionReader(options).duration("timeout") ?? REQUEST_TIMEOUT;
}

/**
 * Connects as the options say.
 *
 * @throws Error with a single line for an invalid option
 */
function toGcsOptions(
  options: StorageOptions,
  retryOptions: NonNullable<GcsOptions["retryOptions"]>,
): GcsOptions {
  const { keyFilename, key } = readServiceAccount(options);
  return {
    projectId: NO_PROJECT,
    retryOptions: { ...retryOptions, totalTimeout: TOTAL_SECONDS },
    ...(keyFilename !== undefined && { keyFilename }),
    ...(key?.gcs_base_url !== undefined && { apiEndpoint: key.gcs_base_url }),
    ...(key?.disable_oauth
      ? { useAuthWithCustomEndpoint: false }
      : key !== undefined && { credentials: key as NonNullable<GcsOptions["credentials"]> }),
  };
}

function infoOf({ name: key, metadata: { size = 0, updated, etag } }: File): ObjectInfo {
  return { key, size: Number(size), modifiedMillis: updated ? Date.parse(updated) : 0, eTag: etag };
}

function listedOf(file: File): ListedObject {
  const { generation } = file.metadata;
  return { ...infoOf(file), tag: generation === undefined ? undefined : String(generation) };
}

function toGcsError(thrown: unknown): unknown {
  if (thrown instanceof LanceError || thrown instanceof TypeError) return thrown;
  return (thrown as Error).name === "AbortError" ? thrown : toStoreError("GCS", failureOf(thrown));
}

/** Returns the outcome of an attempt under a condition, which the service refuses with one of the statuses. */
async function outcomeOf(
  attempt: Promise<unknown>,
  refusals: readonly (number | undefined)[] = [412],
): Promise<Outcome> {
  try {
    await attempt;
    return "done";
  } catch (error) {
    const failure = failureOf(error);
    if (refusals.includes(failure.status)) return "refused";
    if (isTransient(failure)) return { unclear: toGcsError(error) };
    throw toGcsError(error);
  }
}

function known<T>(request: Promise<T>): Promise<T> {
  return request.catch((error: unknown) => {
    throw toGcsError(error);
  });
}

function orMissing<T>(request: Promise<T>): Promise<T | undefined> {
  return request.catch((error: unknown) => {
    // The next listing reveals a missing bucket.
    if (failureOf(error).status === 404) return undefined;
    throw toGcsError(error);
  });
}

/** Size of a piece, in bytes: a multiple of 256 KiB, except at the end. */
const PIECE_BYTES = 16 * 2 ** 20;

/** Longest duration of a piece, in longest durations of other requests. */
const PIECE_LIMITS = 2;

/** How an upload makes its requests. */
interface UploadWay {
  readonly limits: TimeLimits;
  /** Makes a request that the library repeats, with a limit on each attempt. Default: that of small requests. */
  repeated<T>(make: () => Promise<T>, limit?: number): Promise<T>;
  readonly signal: AbortSignal | undefined;
}

/** Status of the answer to a piece that is not the last. */
const INCOMPLETE = 308;

/**
 * Writes an object from bytes as they arrive, holding at most two pieces. A failed upload leaves nothing.
 *
 * The library's own stream would keep waiting for the bytes of a failed source, so this upload is our own: the
 * service's address for it acts as a credential.
 */
async function uploadStream(
  file: File,
  bytes: AsyncIterable<Uint8Array>,
  { limits, repeated, signal }: UploadWay,
): Promise<void> {
  const pieceLimit = () => AbortSignal.timeout(PIECE_LIMITS * limits.longest);
  const pieces = inPieces(bytes, PIECE_BYTES, signal);
  let piece = (await pieces.next()).value ?? new Uint8Array();
  if (piece.byteLength < PIECE_BYTES) {
    const save = () => file.save(Buffer.from(piece), { resumable: false });
    await repeated(save, limits.write(piece.byteLength));
    return;
  }
  const [uri] = await repeated(() => file.createResumableUpload());
  try {
    for (let start = 0; ; ) {
      const next = (await pieces.next()).value;
      const end = start + piece.byteLength;
      const ends = [pieceLimit(), ...(signal === undefined ? [] : [signal])];
      const range = `bytes ${start}-${end - 1}/${next === undefined ? end : "*"}`;
      await sendPiece(uri, piece, range, AbortSignal.any(ends));
      if (next === undefined) return;
      piece = next;
      start = end;
    }
  } catch (error) {
    await fetch(uri, {
      method: "DELETE",
      redirect: "manual",
      signal: pieceLimit(),
    }).catch(() => {});
    throw error;
  }
}

async function sendPiece(uri: string, body: Uint8Array, range: string, signal: AbortSignal): Promise<void> {
  const answer = await fetch(uri, {
    method: "PUT",
    // The bytes and the address, a credential, must not go elsewhere. 308 is not a redirect here.
    redirect: "manual",
    headers: { "content-range": range },
    body: Buffer.from(body),
    signal,
  });
  // Its status says everything.
  await answer.body?.cancel();
  if (answer.ok || answer.status === INCOMPLETE) return;
  throw Object.assign(new Error("a piece was refused"), { code: answer.status });
}
