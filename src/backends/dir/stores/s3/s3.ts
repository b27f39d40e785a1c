import type { Readable } from "node:stream";
import type { CompletedPart } from "@aws-sdk/client-s3";
import { type Bucket, inPieces } from "../bucket.ts";
import { withErrors } from "../failure.ts";
import { createRemoteStore, type RemoteStorage } from "../remote-store.ts";
import type { RenewOptions, StorageOptions } from "../storage-options.ts";
import { pacedBody } from "../time-limits.ts";
import { noResult } from "./answers.ts";
import { isMissing, known, openS3, type S3Access, toS3Error } from "./client.ts";
import { createSmallRequests } from "./small.ts";

/** Maximum number of objects that a request deletes. */
const DELETE_BATCH = 1000;

/**
 * Creates an object store on a bucket of Amazon S3 or a compatible service.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createS3Store(
  bucket: string,
  options: StorageOptions,
  renew?: RenewOptions,
): Promise<RemoteStorage> {
  const access = await openS3(options, renew);
  const { engineOptions, clientOptions } = access;
  return { store: createRemoteStore(s3Bucket(bucket, access)), engineOptions, clientOptions };
}

function s3Bucket(Bucket: string, access: S3Access): Bucket {
  const { sdk, client, limits } = access;

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
    hasEntityTags: true,
    ...createSmallRequests(access, Bucket),
    async getStream(key) {
      const command = new sdk.GetObjectCommand({ Bucket, Key: key });
      const body = (await orMissing(client.send(command, { requestTimeout: limits.small })))?.Body;
      return body && withErrors(pacedBody(body as Readable, limits.longest), toS3Error);
    },
    putStream: (Key, bytes, signal) => known(uploadStream(access, { Bucket, Key }, bytes, signal)),
    async copy(from, Key) {
      const CopySource = `${Bucket}/${from.split("/").map(encodeURIComponent).join("/")}`;
      const { CopyObjectResult } = await known(
        client.send(new sdk.CopyObjectCommand({ Bucket, Key, CopySource })),
      );
      if (CopyObjectResult?.ETag === undefined) throw toS3Error(noResult());
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

/** @returns undefined for a missing object */
function orMissing<T>(request: Promise<T>): Promise<T | undefined> {
  return request.catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw toS3Error(error);
  });
}

/** S3 takes parts of at least 5 MiB, except for the last, and at most 10,000 of them. */
const PART_BYTES = 16 * 2 ** 20;

/** Writes an object from bytes as they arrive, holding at most two parts. A failed upload leaves nothing. */
export async function uploadStream(
  { sdk, client }: S3Access,
  target: { readonly Bucket: string; readonly Key: string },
  bytes: AsyncIterable<Uint8Array>,
  abortSignal: AbortSignal | undefined,
): Promise<void> {
  const options = { ...(abortSignal && { abortSignal }) };
  const pieces = inPieces(bytes, PART_BYTES, abortSignal);
  const first = (await pieces.next()).value ?? new Uint8Array();
  if (first.byteLength < PART_BYTES) {
    await client.send(new sdk.PutObjectCommand({ ...target, Body: first }), options);
    return;
  }
  const { UploadId } = await client.send(new sdk.CreateMultipartUploadCommand(target), options);
  const upload = { ...target, UploadId };
  const Parts: CompletedPart[] = [];
  async function sendPart(Body: Uint8Array): Promise<void> {
    const PartNumber = Parts.length + 1;
    const part = new sdk.UploadPartCommand({ ...upload, PartNumber, Body });
    Parts.push({ PartNumber, ETag: (await client.send(part, options)).ETag });
  }
  try {
    await sendPart(first);
    for await (const piece of pieces) await sendPart(piece);
    const MultipartUpload = { Parts };
    const join = new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload });
    if ((await client.send(join, options)).ETag === undefined) throw noResult();
  } catch (error) {
    await client.send(new sdk.AbortMultipartUploadCommand(upload)).catch(() => {});
    throw error;
  }
}
