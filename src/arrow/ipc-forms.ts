import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../namespace/call.ts";

/** Media type of an Arrow IPC stream. */
export const ARROW_STREAM = "application/vnd.apache.arrow.stream";

/** Media type of an Arrow IPC file. */
export const ARROW_FILE = "application/vnd.apache.arrow.file";

/** First and last bytes of an Arrow IPC file: `ARROW1`. */
const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];

/** Whether bytes begin like an IPC file. */
export function isIpcFile(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}

/**
 * Returns the form of Arrow that a client accepts: the first form that it names. Without one, the default is the file
 * in REST for queries, as the specification promises, and the stream elsewhere.
 */
export function acceptedArrow({
  accept = "",
  protocol,
  method,
}: Call): typeof ARROW_FILE | typeof ARROW_STREAM {
  const [stream, file] = [accept.indexOf(ARROW_STREAM), accept.indexOf(ARROW_FILE)];
  if (stream >= 0 && (file < 0 || stream < file)) return ARROW_STREAM;
  const isSpecified = method.parent.typeName === LanceNamespaceService.typeName;
  if (file >= 0 || (protocol === "rest" && isSpecified)) return ARROW_FILE;
  return ARROW_STREAM;
}
