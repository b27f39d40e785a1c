import type { Message } from "@bufbuild/protobuf";
import type { Steps } from "../../runtime/pace.ts";
import { added, type EncodeInSteps, type TextSink } from "./encode-steps.ts";

/** Length from which a text becomes bytes, which takes less than a millisecond. */
const PIECE_LENGTH = 256 * 1024;

/** JSON of an answer: its text, or the bytes of a long one in pieces, because a text of 50 MB becomes bytes in 75 ms. */
export type JsonPieces = string | readonly Buffer[];

/** Writes a message in steps, and turns its text into bytes wherever there is enough of it. */
export function* piecesOf(encode: EncodeInSteps, message: Message): Steps<JsonPieces> {
  const pieces: Buffer[] = [];
  let text = "";
  const sink: TextSink = {
    add(more) {
      text += more;
      if (text.length < PIECE_LENGTH) return;
      pieces.push(Buffer.from(text));
      text = "";
    },
  };
  yield* added(encode(message, sink), sink);
  if (pieces.length === 0) return text;
  if (text !== "") pieces.push(Buffer.from(text));
  return pieces;
}
