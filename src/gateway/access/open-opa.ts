import type { Logger } from "pino";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readOptionFile } from "../../config/secret-files.ts";
import type { Authorizer } from "../../namespace/authorizer.ts";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";

/** Options about the server of Open Policy Agent, beside its address. */
export type OpaOptions = Pick<ServeOptions, "opaTokenFile" | "opaCaFile" | "opaTimeoutMs" | "opaCacheMs">;

/** Path of the rule if the address has none. */
const DEFAULT_PATH = "/v1/data/lance/gateway/allowed";

/**
 * Opens the way to a server of Open Policy Agent, which need not be there yet.
 *
 * @throws UsageError for a file that cannot be read.
 */
export async function openOpa(address: string, options: OpaOptions, log: Logger): Promise<Authorizer> {
  const { opaTokenFile, opaCaFile, opaTimeoutMs: timeoutMs, opaCacheMs: maxAgeMs } = options;
  const { origin, pathname } = new URL(address);
  const url = pathname === "/" ? `${origin}${DEFAULT_PATH}` : address;
  const ca = opaCaFile === undefined ? undefined : await readOptionFile("--opa-ca-file", opaCaFile);
  const token = opaTokenFile === undefined ? undefined : await openToken(opaTokenFile, log);
  const { createOpaServer } = await import("../../auth/opa/server.ts");
  const { createOpaAuthorizer } = await import("../../auth/opa/opa.ts");
  const server = createOpaServer({ url, timeoutMs, ca, token: token?.read });
  // A server that is away, or a rule without a value, shows in the log before the first call fails.
  void server.ask({ accesses: [] }).then(
    (result) => {
      if (result === undefined)
        log.warn({ url }, "the rule of --opa-url has no value, so that everything is refused");
    },
    (error: unknown) => log.warn({ url, err: error }, "the policy server cannot be asked yet"),
  );
  const { allows, allowsEach, close } = createOpaAuthorizer({ server, maxAgeMs, log });
  return {
    allows,
    allowsEach,
    close() {
      token?.close();
      close();
    },
  };
}

async function openToken(path: string, log: Logger) {
  let token: string;
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles([path]),
    read: async () => (await readOptionFile("--opa-token-file", path)).trim(),
    take(changed) {
      token = changed;
    },
    failed: (error) => log.error({ path, err: error }, "the token for the policy server stays as it was"),
  });
  token = first;
  return { read: () => token, close };
}
