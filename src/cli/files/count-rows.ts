import { parseMessageHead, readPrefix } from "../../arrow/ipc/message.ts";

/** Rows that have passed by. */
export interface CountedRows {
  /** The pieces of the stream, unchanged. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Returns how many rows have passed; undefined for bytes that are not an Arrow IPC stream, which the server refuses. */
  count(): number | undefined;
}

/** Counts the rows of an Arrow IPC stream, split anywhere, from the heads of its batches. */
export function countRows(source: AsyncIterable<Uint8Array>): CountedRows {
  let rows: number | undefined = 0;
  /** The beginning of a message whose metadata has not arrived as a whole. */
  let held: Buffer = Buffer.alloc(0);
  /** Bytes of a message's body that are still to come. */
  let body = 0;

  function add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength; ) {
      const skipped = Math.min(body, piece.byteLength - at);
      body -= skipped;
      at += skipped;
      if (at === piece.byteLength) return;
      const rest = Buffer.from(piece.buffer, piece.byteOffset + at, piece.byteLength - at);
      const bytes = held.byteLength === 0 ? rest : Buffer.concat([held, rest]);
      const prefix = readPrefix(bytes, 0);
      const end = prefix && prefix.bytes + prefix.metadataLength;
      if (prefix === undefined || end === undefined || end > bytes.byteLength) {
        held = Buffer.from(bytes);
        return;
      }
      at = piece.byteLength - (bytes.byteLength - end);
      if (prefix.metadataLength > 0) {
        const head = parseMessageHead(bytes.subarray(prefix.bytes, end), 0);
        rows = (rows ?? 0) + head.rows;
        body = head.bodyLength;
      }
      held = Buffer.alloc(0);
    }
  }

  async function* passed(): AsyncIterable<Uint8Array> {
    for await (const piece of source) {
      try {
        if (rows !== undefined) add(piece);
      } catch {
        rows = undefined;
      }
      yield piece;
    }
  }
  return { bytes: passed(), count: () => rows };
}
