const PREFACE_BYTES = 24;
const FRAME_HEAD_BYTES = 9;
/** Type of the frame with which a request begins. */
const HEADERS = 1;

/** Returns how many requests the first bytes of an HTTP/2 connection begin. */
export function countFirstRequests(bytes: Buffer): number {
  let count = 0;
  for (let at = PREFACE_BYTES; at + FRAME_HEAD_BYTES <= bytes.length; ) {
    if (bytes[at + 3] === HEADERS) count += 1;
    at += FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
  }
  return count;
}

/** The frames of a server that serves nothing: settings, and a farewell for a client that has to calm down. */
export const FAREWELL: Buffer = Buffer.from("000000040000000000000008070000000000000000000000000b", "hex");
