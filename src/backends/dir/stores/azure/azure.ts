import type { Readable } from "node:stream";
import type { BlobItem } from "@azure/storage-blob";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { ObjectInfo } from "../../format/storage.ts";
import { bounded } from "../bounded-requests.ts";
import { type Bucket, boundsOf, inPieces, type ListedObject, type Outcome } from "../bucket.ts";
import { isTransient, withErrors } from "../failure.ts";
import { createRemoteStore, type RemoteStorage } from "../remote-store.ts";
import type { StorageOptions } from "../storage-options.ts";
import { pacedBody, readPaced } from "../time-limits.ts";
import { failureOf, MAX_TRIES, openAzure, toAzureError } from "./client.ts";

/** Size of a block of a long object, in bytes. */
const BLOCK_BYTES = 16 * 2 ** 20;

/** Number of concurrent deletes; a batch request needs a permission of its own. */
const DELETES = 32;

/** Interval between checks of a running copy, in milliseconds, and the number of times that the longest limit is its limit. */
const COPY_INTERVAL = 100;
const COPY_WAITS = 4;

/**
 * Creates an object store on a container of Azure Blob Storage.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createAzureStore(name: string, options: StorageOptions): Promise<RemoteStorage> {
  const { client, single, small, host, limits, engineOptions, clientOptions } = await openAzure(
    name,
    options,
  );
  const blobOf = (key: string) => client.getBlockBlobClient(key);
  const smallOf = (key: string) => small.getBlockBlobClient(key);
  const until = (abortSignal?: AbortSignal) => ({ ...(abortSignal && { abortSignal }) });

  /** Makes a request that the library repeats; the library's own limits are for the service. */
  function repeated<T>(make: () => Promise<T>, limit = limits.longest, isObject = false): Promise<T> {
    return bounded({ host, limit: MAX_TRIES * limit, isObject }, make);
  }
  async function head(key: string, signal?: AbortSignal): Promise<ObjectInfo | undefined> {
    const ask = () => smallOf(key).getProperties(until(signal));
    const found = await orMissing(repeated(ask, limits.small));
    return found && infoOf(key, found);
  }
  /** Opens a blob, or a part of it. */
  async function open(key: string, signal?: AbortSignal, start = 0, bytes?: number) {
    const ask = () => blobOf(key).download(start, bytes, until(signal));
    const found = await orMissing(repeated(ask, limits.longest, true));
    return found && { tag: found.etag ?? "", body: found.readableStreamBody as Readable };
  }
  async function read(...part: Parameters<typeof open>) {
    const found = await open(...part);
    if (found === undefined) return undefined;
    const bytes = await readPaced(found.body, limits.longest, part[3]).catch((error: unknown) => {
      throw toBodyError(error);
    });
    return { tag: found.tag, bytes };
  }
  const bucket: Bucket = {
    scheme: "az",
    name,
    listsInOrder: true,
    hasEntityTags: true,
    get: async (key, signal) => (await read(key, signal))?.bytes,
    getTagged: (key, signal) => read(key, signal),
    async getStream(key) {
      const found = await open(key);
      return found && withErrors(pacedBody(found.body, limits.longest), toBodyError);
    },
    async getPart(key, range, signal) {
      const info = await head(key, signal);
      if (info === undefined) return undefined;
      const { size } = info;
      const { start, end } = boundsOf(range, size);
      if (start >= end) return { size, bytes: new Uint8Array() };
      const found = await read(key, signal, start, end - start);
      return found && { size, bytes: found.bytes };
    },
    head,
    async page({ prefix, recursive, limit: maxPageSize, from: continuationToken }, signal) {
      const query = { prefix, ...until(signal) };
      const settings = {
        ...(maxPageSize !== undefined && { maxPageSize }),
        ...(continuationToken !== undefined && { continuationToken }),
      };
      const pages: AsyncIterator<AzurePage> = recursive
        ? small.listBlobsFlat(query).byPage(settings)
        : small.listBlobsByHierarchy("/", query).byPage(settings);
      const { value } = await known(repeated(() => pages.next(), limits.small));
      const { segment, continuationToken: next } = value as AzurePage;
      return {
        objects: segment.blobItems.map(listedOf),
        prefixes: (segment.blobPrefixes ?? []).map((found) => found.name),
        next: next || undefined,
      };
    },
    async put(key, bytes, signal) {
      await known(repeated(() => blobOf(key).upload(bytes, bytes.byteLength, until(signal))));
    },
    putStream: (key, bytes, signal) => known(uploadBlocks(key, bytes, signal)),
    create: (key, bytes, attempts) => putIf(key, bytes, { ifNoneMatch: "*" }, attempts),
    replace: (key, bytes, tag, attempts) => putIf(key, bytes, { ifMatch: tag }, attempts),
    async copy(from, to) {
      const options = { intervalInMs: COPY_INTERVAL };
      const begin = () => blobOf(to).beginCopyFromURL(blobOf(from).url, options);
      const copy = await known(repeated(begin));
      // The service may leave a copy pending.
      const limit = COPY_WAITS * limits.longest;
      const done = bounded({ host, limit }, () => copy.pollUntilDone());
      await known(done).finally(() => copy.stopPolling());
    },
    async delete(keys) {
      await forEachOf(keys, DELETES, (key) => known(repeated(() => blobOf(key).deleteIfExists())));
    },
    deleteTagged(key, tag, attempts) {
      const remove = () => single.getBlockBlobClient(key).delete({ conditions: { ifMatch: tag } });
      return outcomeOf(bounded({ host, limit: limits.conditionalWrite(0, attempts) }, remove));
    },
  };
  function putIf(
    key: string,
    bytes: Uint8Array,
    conditions: { readonly ifNoneMatch: string } | { readonly ifMatch: string },
    attempts: number,
  ): Promise<Outcome> {
    const limit = limits.conditionalWrite(bytes.byteLength, attempts);
    const upload = () => single.getBlockBlobClient(key).upload(bytes, bytes.byteLength, { conditions });
    return outcomeOf(bounded({ host, limit }, upload));
  }

  /** The service discards blocks that are not listed in the end. */
  async function uploadBlocks(key: string, bytes: AsyncIterable<Uint8Array>, abortSignal?: AbortSignal) {
    const blob = blobOf(key);
    const options = { ...(abortSignal && { abortSignal }) };
    const blocks: string[] = [];
    for await (const piece of inPieces(bytes, BLOCK_BYTES, abortSignal)) {
      const id = Buffer.from(String(blocks.length).padStart(8, "0")).toString("base64");
      await repeated(() => blob.stageBlock(id, piece, piece.byteLength, options));
      blocks.push(id);
    }
    await repeated(() => blob.commitBlockList(blocks, options));
  }
  return { store: createRemoteStore(bucket), engineOptions, clientOptions };
}

/** Common part of the library's two kinds of pages. */
interface AzurePage {
  readonly segment: {
    readonly blobItems: readonly BlobItem[];
    readonly blobPrefixes?: readonly { readonly name: string }[];
  };
  readonly continuationToken?: string;
}

interface Properties {
  readonly contentLength?: number | undefined;
  readonly lastModified?: Date | undefined;
  readonly etag?: string | undefined;
}

/** Tags have quotes in the headers of an answer and none in a listing. */
function infoOf(key: string, { contentLength: size = 0, lastModified, etag }: Properties): ObjectInfo {
  const eTag = etag === undefined ? undefined : `"${etag.replaceAll('"', "")}"`;
  return { key, size, modifiedMillis: lastModified?.getTime() ?? 0, eTag };
}

function listedOf({ name, properties }: BlobItem): ListedObject {
  const info = infoOf(name, properties);
  return { ...info, tag: info.eTag };
}

/** Returns the outcome of an attempt under a condition. */
async function outcomeOf(attempt: Promise<unknown>): Promise<Outcome> {
  try {
    await attempt;
    return "done";
  } catch (error) {
    const failure = failureOf(error);
    if (failure.status === 412 || ["BlobAlreadyExists", "BlobNotFound"].includes(failure.code))
      return "refused";
    if (failure.status === 409) return "busy";
    if (isTransient(failure)) return { unclear: toAzureError(error) };
    throw toAzureError(error);
  }
}

function known<T>(request: Promise<T>): Promise<T> {
  return request.catch((error: unknown) => {
    throw toAzureError(error);
  });
}

function orMissing<T>(request: Promise<T>): Promise<T | undefined> {
  return request.catch((error: unknown) => {
    const { status, code } = failureOf(error);
    if (status === 404 && code !== "ContainerNotFound") return undefined;
    throw toAzureError(error);
  });
}

/** Converts the failure of a body; the library says of one that was cut that somebody has cancelled it. */
function toBodyError(thrown: unknown): unknown {
  return toAzureError((thrown as Error).name === "AbortError" ? { code: "ECONNRESET" } : thrown);
}
