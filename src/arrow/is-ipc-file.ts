/** What an Arrow IPC file begins and ends with: `ARROW1`. */
const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];

/** Whether bytes begin like an IPC file. */
export function isIpcFile(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}
