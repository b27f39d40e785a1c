/** Size of a view, in bytes. */
export const VIEW_BYTES = 16;

/** Longest value that is within its view, in bytes. */
const SHORT_BYTES = 12;

/**
 * Returns the size of the values to which views refer, in bytes. The engine stores each of them, although any number of views may share the
 * bytes of one: 1 MB would become 2 GB by 2,000 views.
 *
 * @param validity bits of the values that are not null. Default: none is.
 */
export function bytesInViews(views: Uint8Array, length: number, validity: Uint8Array | undefined): number {
  const view = new DataView(views.buffer, views.byteOffset, views.byteLength);
  let bytes = 0;
  for (let i = 0; i < length; i++) {
    const size = view.getUint32(i * VIEW_BYTES, true);
    if (size > SHORT_BYTES && (validity === undefined || isSet(validity, i))) bytes += size;
  }
  return bytes;
}

/** Whether a bit is set. */
export function isSet(bits: Uint8Array, at: number): boolean {
  return (((bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
}
