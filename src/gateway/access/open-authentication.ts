import type { Logger } from "pino";
import { openKeyRing, proveByKeys } from "../../auth/api-keys/key-ring.ts";
import { proveByCertificates } from "../../auth/authenticate-by-certificate.ts";
import type { Way } from "../../auth/authenticator.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";

/**
 * Opens the ways by which callers prove who they are; it loads only what the requested ones need.
 *
 * @throws UsageError for options that are missing beside others, and for a file of keys that cannot be read.
 */
export async function openWays(options: ServeOptions, log: Logger): Promise<readonly Way[]> {
  const { auth } = options;
  const asksTokens = auth.includes("oidc") || auth.includes("kubernetes");
  const tokens = asksTokens ? await openTokenWay(options, log) : undefined;
  const certificates = auth.includes("mtls") ? certificateWay(options) : undefined;
  // Last, because it follows its file, which nobody would end if another way could not be opened.
  const keys = auth.includes("api-key") ? await keyWay(options, log) : undefined;
  // A credential of the request counts before the certificate of its connection.
  return [keys, tokens, certificates].filter((way) => way !== undefined);
}

async function openTokenWay(options: ServeOptions, log: Logger): Promise<Way> {
  const { openVerifiers } = await import("./token-issuers.ts");
  const verifiers = await openVerifiers(options, log);
  const { proveByTokens } = await import("../../auth/tokens/authenticate-by-token.ts");
  return proveByTokens({ verifiers, passesOn: options.passTokens });
}

function certificateWay({ tlsClientCa, mtlsRoles }: ServeOptions): Way {
  if (tlsClientCa === undefined) throw new UsageError("--auth mtls requires --tls-client-ca");
  return proveByCertificates(mtlsRoles);
}

async function keyWay({ apiKeysFile: path }: ServeOptions, log: Logger): Promise<Way> {
  if (path === undefined) throw new UsageError("--auth api-key requires --api-keys-file");
  const keys = await openKeyRing({ path, log }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT")
      throw new UsageError(
        `--api-keys-file ${path} does not exist (ENOENT); lance-gateway keys create makes it`,
      );
    throw new UsageError(`--api-keys-file cannot be used: ${error.message}`, { cause: error });
  });
  return proveByKeys(keys);
}
