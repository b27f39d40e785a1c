const PREFACE_BYTES = 24;
const FRAME_HEAD_BYTES = 9;
/** Type of the frame that resets a request. */
const RST_STREAM = 3;

/**
 * Returns how many requests the first bytes of an HTTP/2 connection reset. Those that are open are bounded, and Node refuses others without a
 * stream, but each reset lets it create one more.
 */
export function countFirstResets(bytes: Buffer): number {
  let count = 0;
  for (let at = PREFACE_BYTES; at + FRAME_HEAD_BYTES <= bytes.length; ) {
    if (bytes[at + 3] === RST_STREAM) count += 1;
    at += FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
  }
  return count;
}

/** The frames of a server that serves nothing: settings, and a farewell for a client that has to calm down. */
export const FAREWELL: Buffer = Buffer.from("000000040000000000000008070000000000000000000000000b", "hex");
