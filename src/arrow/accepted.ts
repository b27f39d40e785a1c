import type { Call } from "../namespace/call.ts";
import { ARROW_FILE, ARROW_STREAM } from "./media-types.ts";

/**
 * The form of Arrow that a client wants: the one that it names first, or without any the file that the specification
 * promises in REST, and the stream elsewhere.
 */
export function acceptedArrow({ accept = "", protocol }: Call): typeof ARROW_FILE | typeof ARROW_STREAM {
  const [stream, file] = [accept.indexOf(ARROW_STREAM), accept.indexOf(ARROW_FILE)];
  if (stream >= 0 && (file < 0 || stream < file)) return ARROW_STREAM;
  if (file >= 0 || protocol === "rest") return ARROW_FILE;
  return ARROW_STREAM;
}
