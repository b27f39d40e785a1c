import type { Logger } from "pino";
import { openKeyRing } from "../auth/api-keys/key-ring.ts";
import { proveByKeys } from "../auth/api-keys/way.ts";
import { type Authenticator, createAuthenticator } from "../auth/authenticator.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";

/**
 * Opens what the options say about authentication; undefined if nobody is asked.
 *
 * @throws UsageError for options that contradict each other, and for a file of keys that cannot be read.
 */
export async function openAuthenticator(
  { auth, apiKeysFile: path }: Pick<ServeOptions, "auth" | "apiKeysFile">,
  log: Logger,
): Promise<Authenticator | undefined> {
  if (auth.length === 0) {
    if (path !== undefined) throw new UsageError("--api-keys-file needs --auth api-key beside it");
    return undefined;
  }
  if (path === undefined) throw new UsageError("--auth api-key needs --api-keys-file beside it");
  const keys = await openKeyRing({ path, log }).catch((error: Error) => {
    throw new UsageError(`--api-keys-file: ${error.message}`, { cause: error });
  });
  return createAuthenticator([proveByKeys(keys)]);
}
