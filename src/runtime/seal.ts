import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Hides content from those who carry it, and proves that it is unchanged. */
export interface Seal {
  /** @param boundTo what has to be the same when it is opened. Default: nothing. */
  seal(content: Uint8Array, boundTo?: Uint8Array): Buffer;
  /**
   * Returns the content of a sealed one.
   *
   * @throws Error for bytes that this seal has not made, and for content that is bound to something else.
   */
  open(sealed: Uint8Array, boundTo?: Uint8Array): Buffer;
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const NOTHING = new Uint8Array();

/** Creates the seal of all gateways that have a secret. @param purpose what is sealed; a seal opens nothing of another purpose. */
export function createSeal(secret: string, purpose: string): Seal {
  const key = Buffer.from(hkdfSync("sha256", secret, "", `lance-gateway ${purpose}`, KEY_BYTES));
  return {
    seal(content, boundTo = NOTHING) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(boundTo);
      const hidden = Buffer.concat([cipher.update(content), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), hidden]);
    },
    open(sealed, boundTo = NOTHING) {
      const [nonce, rest] = [sealed.subarray(0, NONCE_BYTES), sealed.subarray(NONCE_BYTES)];
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(boundTo).setAuthTag(rest.subarray(0, TAG_BYTES));
      return Buffer.concat([decipher.update(rest.subarray(TAG_BYTES)), decipher.final()]);
    },
  };
}
