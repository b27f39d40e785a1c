import type { File } from "@google-cloud/storage";
import { inPieces } from "./pieces.ts";

/** Size of a piece, in bytes: a multiple of 256 KiB, except at the end. */
const PIECE_BYTES = 16 * 2 ** 20;

/** Longest duration of a piece, in milliseconds. */
const PIECE_TIMEOUT = 60_000;

/** Status of the answer to a piece that is not the last. */
const INCOMPLETE = 308;

/**
 * Writes an object from bytes as they arrive, holding at most two pieces. A failed upload leaves nothing.
 *
 * The library's own stream would keep waiting for the bytes of a failed source, so this upload is our own: the
 * service's address for it acts as a credential.
 */
export async function uploadStream(
  file: File,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pieces = inPieces(bytes, PIECE_BYTES, signal);
  let piece = (await pieces.next()).value ?? new Uint8Array();
  if (piece.byteLength < PIECE_BYTES) {
    await file.save(Buffer.from(piece), { resumable: false });
    return;
  }
  const [uri] = await file.createResumableUpload();
  try {
    for (let start = 0; ; ) {
      const next = (await pieces.next()).value;
      const end = start + piece.byteLength;
      await sendPiece(uri, piece, `bytes ${start}-${end - 1}/${next === undefined ? end : "*"}`, signal);
      if (next === undefined) return;
      piece = next;
      start = end;
    }
  } catch (error) {
    await fetch(uri, {
      method: "DELETE",
      redirect: "manual",
      signal: AbortSignal.timeout(PIECE_TIMEOUT),
    }).catch(() => {});
    throw error;
  }
}

async function sendPiece(
  uri: string,
  body: Uint8Array,
  range: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const limit = AbortSignal.timeout(PIECE_TIMEOUT);
  const answer = await fetch(uri, {
    method: "PUT",
    // The bytes and the address, a credential, must not go elsewhere. 308 is not a redirect here.
    redirect: "manual",
    headers: { "content-range": range },
    body: Buffer.from(body),
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  });
  await answer.arrayBuffer();
  if (answer.ok || answer.status === INCOMPLETE) return;
  throw Object.assign(new Error("a piece was refused"), { code: answer.status });
}
