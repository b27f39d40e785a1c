import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CacheableKind } from "./cacheable.ts";

/** Size of what a sealed text has more than the text: a nonce and a tag, or a checksum in their place. */
export const SEAL_BYTES = 28;

/** Protects what the cache writes to its disk, so that a changed byte is noticed. */
export interface Seal {
  /** Name of the protection, by which the files of another one are recognised. */
  readonly name: string;
  /**
   * Returns the bytes as they are written, and their seal.
   *
   * @param context what the bytes belong to; they open for nothing else
   */
  close(bytes: Buffer, context: Buffer): { readonly closed: Buffer; readonly seal: Buffer };
  /** Returns the bytes; undefined if they, their seal or the context have changed. */
  open(closed: Buffer, seal: Buffer, context: Buffer): Buffer | undefined;
  /** Returns the name of an object in the files of the cache, 16 bytes long. */
  nameOf(object: string): Buffer;
}

const NAME_BYTES = 16;

/** Checksums, for a disk that nobody else reads. */
export function createChecksums(): Seal {
  /** Two checksums of half the bytes each, which begin with the context. */
  function sumOf(bytes: Buffer, context: Buffer): Buffer {
    const sum = Buffer.alloc(SEAL_BYTES);
    const start = crc32(context);
    const middle = bytes.length >>> 1;
    sum.writeUInt32LE(crc32(bytes.subarray(0, middle), start), 0);
    sum.writeUInt32LE(crc32(bytes.subarray(middle), (start ^ 1) >>> 0), 4);
    sum.writeUInt32LE(bytes.length, 8);
    return sum;
  }
  return {
    name: "crc32",
    close: (bytes, context) => ({ closed: bytes, seal: sumOf(bytes, context) }),
    open: (closed, seal, context) => (sumOf(closed, context).equals(seal) ? closed : undefined),
    nameOf: (object) => createHash("sha256").update(object).digest().subarray(0, NAME_BYTES),
  };
}

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;

/** Encryption with AES-256-GCM, whose tag is the checksum. */
export function createEncryption(secret: Buffer): Seal {
  const derive = (purpose: string) => createHmac("sha256", secret).update(purpose).digest();
  const [key, nameKey] = [derive("lance-gateway cache blocks"), derive("lance-gateway cache names")];
  return {
    name: `${CIPHER} ${derive("lance-gateway cache key").toString("hex").slice(0, 16)}`,
    close(bytes, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(context);
      const closed = Buffer.concat([cipher.update(bytes), cipher.final()]);
      return { closed, seal: Buffer.concat([nonce, cipher.getAuthTag()]) };
    },
    open(closed, seal, context) {
      const decipher = createDecipheriv(CIPHER, key, seal.subarray(0, NONCE_BYTES)).setAAD(context);
      decipher.setAuthTag(seal.subarray(NONCE_BYTES));
      try {
        return Buffer.concat([decipher.update(closed), decipher.final()]);
      } catch {
        return undefined;
      }
    },
    nameOf: (object) => createHmac("sha256", nameKey).update(object).digest().subarray(0, NAME_BYTES),
  };
}

/** Facts of an object of a bucket when its blocks were read. */
export interface ObjectFacts {
  /** Name of the object in the cache, as hexadecimal digits. */
  readonly name: string;
  readonly kind: CacheableKind;
  /** Entity tag, as the service wrote it. */
  readonly tag: string;
  /** In bytes. */
  readonly size: number;
  /** In milliseconds since 1970. */
  readonly modified: number;
}

/** A block of an object in a slot of the disk. */
export interface SlotRecord {
  readonly object: ObjectFacts;
  /** Position of the block in the object, from 0. */
  readonly index: number;
  /** Seal of the block's bytes. */
  readonly seal: Buffer;
}

/** Size of a record on the disk, in bytes. */
export const RECORD_BYTES = 256;
const BODY_BYTES = RECORD_BYTES - SEAL_BYTES;

/** Longest entity tag of a record. */
export const MAX_TAG_BYTES = BODY_BYTES - 16 - 4 - 8 - 8 - SEAL_BYTES - 2;

const KINDS: readonly CacheableKind[] = ["index", "deletions", "data", "transaction"];

/** Returns the context of a record: its slot. */
const contextOf = (slot: number) => Buffer.from(`record ${slot}`);

/** Returns the context of a block, which does not open for another object, tag or position. */
export function blockContext({ name, tag, size }: ObjectFacts, index: number): Buffer {
  return Buffer.from(`${name} ${index} ${size} ${tag}`);
}

/** Encodes the record of a slot. */
export function encodeRecord(seal: Seal, slot: number, record: SlotRecord): Buffer {
  const { object, index } = record;
  const body = Buffer.alloc(BODY_BYTES);
  body.write(object.name, 0, 16, "hex");
  body.writeUInt32LE(index, 16);
  body.writeDoubleLE(object.size, 20);
  body.writeDoubleLE(object.modified, 28);
  record.seal.copy(body, 36);
  body.writeUInt8(KINDS.indexOf(object.kind), 36 + SEAL_BYTES);
  body.writeUInt8(body.write(object.tag, 38 + SEAL_BYTES, "latin1"), 37 + SEAL_BYTES);
  const { closed, seal: outer } = seal.close(body, contextOf(slot));
  return Buffer.concat([outer, closed]);
}

/** Decodes the record of a slot; undefined for one that is empty or damaged. */
export function decodeRecord(seal: Seal, slot: number, bytes: Buffer): SlotRecord | undefined {
  const body = seal.open(bytes.subarray(SEAL_BYTES), bytes.subarray(0, SEAL_BYTES), contextOf(slot));
  const kind = body && KINDS[body.readUInt8(36 + SEAL_BYTES)];
  if (body === undefined || kind === undefined) return undefined;
  const length = body.readUInt8(37 + SEAL_BYTES);
  return {
    object: {
      name: body.toString("hex", 0, 16),
      kind,
      tag: body.toString("latin1", 38 + SEAL_BYTES, 38 + SEAL_BYTES + length),
      size: body.readDoubleLE(20),
      modified: body.readDoubleLE(28),
    },
    index: body.readUInt32LE(16),
    seal: Buffer.from(body.subarray(36, 36 + SEAL_BYTES)),
  };
}
