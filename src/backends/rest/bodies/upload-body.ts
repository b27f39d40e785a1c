import type { DescMethod, Message } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../../arrow/ipc/ipc-forms.ts";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { bodyFieldOf } from "../../../namespace/operations/body-field.ts";
import { freeAtOnce, WORTH_FREEING_BYTES } from "../../../runtime/free-at-once.ts";

/**
 * Upper bound on the bytes in transit when a connection requests the next piece: it does so when its buffer is not
 * full.
 */
const CONNECTION_BYTES = 1024 * 1024;

/** Media types are short, and servers cut connections off over long or malformed headers. */
const MEDIA_TYPE = /^[\t\x20-\x7e]{1,1024}$/;

/**
 * Returns the media type of an upload; messages of gRPC and Connect may have any text there.
 *
 * @throws LanceError InvalidInput
 */
export function mediaTypeOf(request: Message, { input }: DescMethod): string {
  const body = (request as unknown as Record<string, HttpBody | undefined>)[bodyFieldOf(input) ?? ""];
  const type = body?.contentType || ARROW_STREAM;
  if (MEDIA_TYPE.test(type)) return type;
  throw new LanceError("InvalidInput", "the content type of the body is not a media type");
}

/** Reports every piece when the connection has taken it, and frees its memory some time later. */
export async function* released(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  const taken: Uint8Array[] = [];
  let size = 0;
  for await (const piece of data) {
    yield piece;
    call.releaseBody(piece.byteLength);
    if (call.ownsBody !== true || piece.byteLength < WORTH_FREEING_BYTES) continue;
    taken.push(piece);
    for (size += piece.byteLength; size > CONNECTION_BYTES; ) {
      const oldest = taken.shift() as Uint8Array;
      size -= oldest.byteLength;
      freeAtOnce(oldest);
    }
  }
}
