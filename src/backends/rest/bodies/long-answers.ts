import type { Message } from "@bufbuild/protobuf";
import type { UpstreamForm } from "../../../dialects/upstream.ts";
import { inSlices } from "../../../runtime/pace.ts";
import { createLongAnswerReader, type LongAnswer } from "../../../transcode/long-answer.ts";
import type { UpstreamResponse } from "../transport/transport.ts";

/** Size above which an answer is read in steps, in bytes: a shorter one takes a few milliseconds, whatever it contains. */
const LONG_BYTES = 64 * 1024;

/** Reads long answers with pauses for other calls. */
export interface LongReader {
  isLong(body: UpstreamResponse["body"]): body is Buffer;
  read(answer: LongAnswer): Promise<Message>;
}

/** Creates the reader of long answers; apart from downloads, because browsers read those, and have no modules of Node. */
export function createLongReader(form: UpstreamForm): LongReader {
  const read = createLongAnswerReader(form);
  return {
    isLong: (body): body is Buffer => body instanceof Buffer && body.length > LONG_BYTES,
    read: (answer) => inSlices(read(answer)),
  };
}
