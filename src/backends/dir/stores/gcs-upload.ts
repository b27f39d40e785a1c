import type { File } from "@google-cloud/storage";
import { inPieces } from "./pieces.ts";

/** What the service takes at once is a multiple of 256 KiB, but for the end. */
const PIECE_BYTES = 16 * 2 ** 20;

/** How long one piece may take, in milliseconds. */
const PIECE_TIMEOUT = 60_000;

/** The answer to a piece that is not the last. */
const INCOMPLETE = 308;

/**
 * Writes an object of bytes that arrive; two pieces are held at most. An upload that fails leaves nothing.
 *
 * The library's own stream would go on waiting for the bytes of a source that failed, so the upload is its own: the
 * address that the service gives for it stands for the credentials.
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
    // The bytes and the address, which stands for credentials, go nowhere else. 308 is no redirect here.
    redirect: "manual",
    headers: { "content-range": range },
    body: Buffer.from(body),
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  });
  await answer.arrayBuffer();
  if (answer.ok || answer.status === INCOMPLETE) return;
  throw Object.assign(new Error("a piece was refused"), { code: answer.status });
}
