import type { CompletedPart } from "@aws-sdk/client-s3";
import { inPieces } from "../pieces.ts";
import { noResult } from "./answers.ts";
import type { S3Access } from "./client.ts";

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
