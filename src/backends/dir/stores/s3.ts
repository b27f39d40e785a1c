import type { GetObjectCommandOutput, ListObjectsV2CommandOutput } from "@aws-sdk/client-s3";
import type { ObjectInfo } from "../format/storage.ts";
import type { StorageOptions } from "./options.ts";
import {
  type Bucket,
  type BucketPage,
  type ByteRange,
  createRemoteStore,
  type RemoteStorage,
} from "./remote-store.ts";
import { failureOf, isMissing, isPassing, openS3, type S3Access, toS3Error } from "./s3-client.ts";
import { uploadStream } from "./s3-upload.ts";

/** The most objects that one request deletes. */
const DELETE_BATCH = 1000;

/**
 * A bucket of Amazon S3, or of what speaks its language, as an object store.
 *
 * @throws Error with one clear line for a missing package or an option that cannot be understood
 */
export async function createS3Store(bucket: string, options: StorageOptions): Promise<RemoteStorage> {
  const access = await openS3(options);
  return { store: createRemoteStore(s3Bucket(bucket, access)), engineOptions: access.engineOptions };
}

function s3Bucket(Bucket: string, access: S3Access): Bucket {
  const { sdk, client, single } = access;

  async function read(Key: string, Range?: string): Promise<GetObjectCommandOutput | undefined> {
    return orMissing(client.send(new sdk.GetObjectCommand({ Bucket, Key, Range })));
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
    async get(key) {
      const found = await read(key);
      return found && known(bytesOf(found));
    },
    async getStream(key) {
      const body = (await read(key))?.Body;
      return body && withErrors(body as AsyncIterable<Uint8Array>);
    },
    async getPart(key, range) {
      try {
        const found = await client.send(
          new sdk.GetObjectCommand({ Bucket, Key: key, Range: headerOf(range) }),
        );
        const bytes = await bytesOf(found);
        return { bytes, size: Number(/\/(\d+)$/.exec(found.ContentRange ?? "")?.[1] ?? bytes.byteLength) };
      } catch (error) {
        if (failureOf(error).status === 416) return { bytes: new Uint8Array(), size: 0 };
        if (isMissing(error)) return undefined;
        throw toS3Error(error);
      }
    },
    async head(key) {
      const found = await orMissing(client.send(new sdk.HeadObjectCommand({ Bucket, Key: key })));
      return found && infoOf(key, found.ContentLength, found);
    },
    async *pages(Prefix, recursive, MaxKeys) {
      const Delimiter = recursive ? undefined : "/";
      let ContinuationToken: string | undefined;
      do {
        const query = { Bucket, Prefix, Delimiter, MaxKeys, ContinuationToken };
        const page = await known(client.send(new sdk.ListObjectsV2Command(query)));
        yield pageOf(page);
        ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (ContinuationToken !== undefined);
    },
    async put(Key, Body) {
      await known(client.send(new sdk.PutObjectCommand({ Bucket, Key, Body })));
    },
    putStream: (Key, bytes, signal) => known(uploadStream(access, { Bucket, Key }, bytes, signal)),
    async create(Key, Body) {
      try {
        await single.send(new sdk.PutObjectCommand({ Bucket, Key, Body, IfNoneMatch: "*" }));
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

function pageOf({ Contents = [], CommonPrefixes = [] }: ListObjectsV2CommandOutput): BucketPage {
  return {
    objects: Contents.map((object) => infoOf(object.Key ?? "", object.Size, object)),
    prefixes: CommonPrefixes.map(({ Prefix = "" }) => Prefix),
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
