import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createSeal } from "../../runtime/seal.ts";

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

/** No name of an object begins like this, so that a name is never taken for a sealed token. */
const PREFIX = "$";

/** Creates the seal of all gateways that have a secret. */
export function createTokenSeal(secret: string): TokenSeal {
  const { seal, open } = createSeal(secret, "page tokens");
  return {
    seal(token, call) {
      return PREFIX + seal(Buffer.from(token), factsOf(call)).toString("base64url");
    },
    open(text, call) {
      if (!text.startsWith(PREFIX)) return undefined;
      try {
        return open(Buffer.from(text.slice(PREFIX.length), "base64url"), factsOf(call)).toString();
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
