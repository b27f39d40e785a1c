import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

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
