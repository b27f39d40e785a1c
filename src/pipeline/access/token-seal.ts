import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";

/** Hides the page tokens of a listing from those who get them, and binds them to a caller and a listing. */
export interface TokenSeal {
  seal(token: string, call: Call): string;
  /**
   * Returns the token in a sealed one; undefined for a text that is not sealed, such as a name that the caller has written itself.
   *
   * @throws LanceError InvalidInput for a sealed token of another caller, another listing or another secret.
   */
  open(text: string, call: Call): string | undefined;
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** No name of an object begins like this, so that a name is never taken for a sealed token. */
const PREFIX = "$";

/** Creates the seal of all gateways that have a secret. */
export function createTokenSeal(secret: string): TokenSeal {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "lance-gateway page tokens", KEY_BYTES));

  return {
    seal(token, call) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(factsOf(call));
      const text = Buffer.concat([cipher.update(token, "utf8"), cipher.final()]);
      return PREFIX + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
    },
    open(text, call) {
      if (!text.startsWith(PREFIX)) return undefined;
      const bytes = Buffer.from(text.slice(PREFIX.length), "base64url");
      const [nonce, rest] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES)];
      try {
        const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(factsOf(call)).setAuthTag(rest.subarray(0, TAG_BYTES));
        return decipher.update(rest.subarray(TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      } catch (cause) {
        throw new LanceError("InvalidInput", "page_token is not from this listing", { cause });
      }
    },
  };
}

/** Returns what a token is bound to: the caller, and the listing. */
function factsOf({ principal, database, method, id }: Call): Buffer {
  return Buffer.from(JSON.stringify([principal?.by, principal?.name, database ?? null, method.name, id]));
}
