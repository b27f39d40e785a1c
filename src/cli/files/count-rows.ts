import { parseMessageHead, readPrefix } from "../../arrow/message.ts";

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
      held = Buffer.concat([held, piece.subarray(at)]);
      const prefix = readPrefix(held, 0);
      const end = prefix && prefix.bytes + prefix.metadataLength;
      if (prefix === undefined || end === undefined || end > held.byteLength) return;
      at = piece.byteLength - (held.byteLength - end);
      if (prefix.metadataLength > 0) {
        const head = parseMessageHead(held.subarray(prefix.bytes, end), 0);
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
