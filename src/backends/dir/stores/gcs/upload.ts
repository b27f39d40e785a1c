import type { File } from "@google-cloud/storage";
import { inPieces } from "../pieces.ts";
import type { TimeLimits } from "../time-limits.ts";

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
export async function uploadStream(
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
