import type { Logger } from "pino";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import { openTlsIdentity, type TlsIdentity } from "../server/tls/identity.ts";

/** Options about encryption on the gateway's port. */
export type TlsOptions = Partial<Pick<ServeOptions, "tlsCert" | "tlsKey" | "tlsClientCa">>;

/**
 * Opens what the options say about TLS; undefined if the port speaks plain text.
 *
 * @throws UsageError if an option is missing beside another, or a file cannot be used.
 */
export async function openTls(options: TlsOptions, log: Logger): Promise<TlsIdentity | undefined> {
  const { tlsCert: certificate, tlsKey: key, tlsClientCa: clientAuthorities } = options;
  if (certificate === undefined && key === undefined && clientAuthorities === undefined) return undefined;
  if (certificate === undefined || key === undefined)
    throw new UsageError("TLS requires both --tls-cert and --tls-key");
  return openTlsIdentity({ files: { certificate, key, clientAuthorities }, log }).catch((error: Error) => {
    throw new UsageError(`--tls-cert: ${error.message}`, { cause: error });
  });
}
