import type { GetObjectCommandOutput, ListObjectsV2CommandOutput } from "@aws-sdk/client-s3";
import type { ObjectInfo } from "../format/storage.ts";
import type { Bucket, BucketPage, ByteRange } from "./bucket.ts";
import { createRemoteStore, type RemoteStorage } from "./remote-store.ts";
import { failureOf, isMissing, isPassing, openS3, type S3Access, toS3Error } from "./s3-client.ts";
import { uploadStream } from "./s3-upload.ts";
import type { StorageOptions } from "./storage-options.ts";

/** Maximum number of objects that a request deletes. */
const DELETE_BATCH = 1000;

/**
 * Creates an object store on a bucket of Amazon S3 or a compatible service.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createS3Store(bucket: string, options: StorageOptions): Promise<RemoteStorage> {
  const access = await openS3(options);
  const { engineOptions, clientOptions } = access;
  return { store: createRemoteStore(s3Bucket(bucket, access)), engineOptions, clientOptions };
}

function s3Bucket(Bucket: string, access: S3Access): Bucket {
  const { sdk, client, single, limits } = access;
  const small = (abortSignal?: AbortSignal) => ({
    requestTimeout: limits.small,
    ...(abortSignal && { abortSignal }),
  });

  async function read(Key: string, signal?: AbortSignal): Promise<GetObjectCommandOutput | undefined> {
    return orMissing(client.send(new sdk.GetObjectCommand({ Bucket, Key }), small(signal)));
  }
  async function deleteSome(keys: readonly string[]): Promise<void> {
    const Objects = keys.map((Key) => ({ Key }));
    const command = new sdk.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } });
    const { Errors = [] } = await known(client.send(command));
    const refused = Errors.find(({ Code }) => Code !== "NoSuchKey");
    if (refused !== undefined) throw toS3Error({ name: refused.Code, $metadata: { httpStatusCode: 500 } });
  }
  return {
    scheme: "s3",
    name: Bucket,
    // Directory buckets, which have this ending, list in no order.
    listsInOrder: !Bucket.endsWith("--x-s3"),
    async get(key, signal) {
      const found = await read(key, signal);
      return found && known(bytesOf(found));
    },
    async getStream(key) {
      const body = (await read(key))?.Body;
      return body && withErrors(body as AsyncIterable<Uint8Array>);
    },
    async getPart(key, range, signal) {
      try {
        const found = await client.send(
          new sdk.GetObjectCommand({ Bucket, Key: key, Range: headerOf(range) }),
          small(signal),
        );
        const bytes = await bytesOf(found);
        return { bytes, size: Number(/\/(\d+)$/.exec(found.ContentRange ?? "")?.[1] ?? bytes.byteLength) };
      } catch (error) {
        if (failureOf(error).status === 416) return { bytes: new Uint8Array(), size: 0 };
        if (isMissing(error)) return undefined;
        throw toS3Error(error);
      }
    },
    async head(key, signal) {
      const command = new sdk.HeadObjectCommand({ Bucket, Key: key });
      const found = await orMissing(client.send(command, small(signal)));
      return found && infoOf(key, found.ContentLength, found);
    },
    async page({ prefix: Prefix, recursive, limit: MaxKeys, from: ContinuationToken }, signal) {
      const Delimiter = recursive ? undefined : "/";
      const query = { Bucket, Prefix, Delimiter, MaxKeys, ContinuationToken };
      return pageOf(await known(client.send(new sdk.ListObjectsV2Command(query), small(signal))));
    },
    async put(Key, Body, signal) {
      const options = { ...small(signal), requestTimeout: limits.write(Body.byteLength) };
      await known(client.send(new sdk.PutObjectCommand({ Bucket, Key, Body }), options));
    },
    putStream: (Key, bytes, signal) => known(uploadStream(access, { Bucket, Key }, bytes, signal)),
    async create(Key, Body, attempts) {
      const requestTimeout = limits.conditionalWrite(Body.byteLength, attempts);
      const command = new sdk.PutObjectCommand({ Bucket, Key, Body, IfNoneMatch: "*" });
      try {
        await single.send(command, { requestTimeout });
        return "created";
      } catch (error) {
        const { status } = failureOf(error);
        if (status === 412) return "taken";
        if (status === 409) return "busy";
        if (isPassing(error)) return { unclear: toS3Error(error) };
        throw toS3Error(error);
      }
    },
    async copy(from, Key) {
      const CopySource = `${Bucket}/${from.split("/").map(encodeURIComponent).join("/")}`;
      await known(client.send(new sdk.CopyObjectCommand({ Bucket, Key, CopySource })));
    },
    async delete(keys) {
      const [only] = keys;
      if (only !== undefined && keys.length === 1) {
        await orMissing(client.send(new sdk.DeleteObjectCommand({ Bucket, Key: only })));
        return;
      }
      for (let at = 0; at < keys.length; at += DELETE_BATCH)
        await deleteSome(keys.slice(at, at + DELETE_BATCH));
    },
  };
}

function known<T>(request: Promise<T>): Promise<T> {
  return request.catch((error: unknown) => {
    throw toS3Error(error);
  });
}

/** @returns undefined for a missing object */
function orMissing<T>(request: Promise<T>): Promise<T | undefined> {
  return request.catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw toS3Error(error);
  });
}

function headerOf(range: ByteRange): string {
  return "length" in range ? `bytes=-${range.length}` : `bytes=${range.start}-${range.end - 1}`;
}

function infoOf(
  key: string,
  size = 0,
  { LastModified, ETag: eTag }: { LastModified?: Date | undefined; ETag?: string | undefined },
): ObjectInfo {
  return { key, size, modifiedMillis: LastModified?.getTime() ?? 0, eTag };
}

function pageOf(page: ListObjectsV2CommandOutput): BucketPage {
  const { Contents = [], CommonPrefixes = [], IsTruncated, NextContinuationToken } = page;
  return {
    objects: Contents.map((object) => infoOf(object.Key ?? "", object.Size, object)),
    prefixes: CommonPrefixes.map(({ Prefix = "" }) => Prefix),
    next: IsTruncated ? NextContinuationToken : undefined,
  };
}

async function bytesOf({ Body }: GetObjectCommandOutput): Promise<Uint8Array> {
  return (await Body?.transformToByteArray()) ?? new Uint8Array();
}

async function* withErrors(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toS3Error(error);
  }
}
