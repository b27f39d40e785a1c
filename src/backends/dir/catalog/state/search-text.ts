import { createKey, type RowKey } from "./rows/row-key.ts";

/** Encodes search texts as bytes, in memory that the next search reuses. */
export interface SearchText {
  /** Returns the UTF-8 bytes of a text and their end, which is -1 for a malformed text with half a character. */
  encode(text: string): { readonly bytes: Uint8Array; readonly end: number };
  /** Returns the place in the order of a name below a parent; kind -1 is before all kinds. */
  place(parent: string, name: string, kind: number): RowKey;
}

/** Creates an encoder for searches. */
export function createSearchText(): SearchText {
  const encoded = { bytes: Buffer.alloc(512), end: 0 };
  const placed = createKey();
  return {
    encode(text) {
      if (text.length * 3 > encoded.bytes.byteLength) encoded.bytes = Buffer.alloc(text.length * 6);
      encoded.end = encodeInto(text, encoded.bytes);
      return encoded;
    },
    place(parent, name, kind) {
      placed.bytes = Buffer.from(parent === "" ? name : `${parent}$${name}`);
      placed.end = placed.bytes.byteLength;
      placed.nameStart = placed.end - Buffer.byteLength(name);
      placed.kind = kind;
      return placed;
    },
  };
}

function encodeInto(text: string, bytes: Buffer): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) return text.isWellFormed() ? bytes.write(text) : -1;
    bytes[i] = unit;
  }
  return text.length;
}
