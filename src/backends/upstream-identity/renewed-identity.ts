import { LanceError } from "../../namespace/errors.ts";
import { whileWaiting } from "../../runtime/time/while-waiting.ts";
import type { UpstreamCredentials, UpstreamIdentity } from "./identity.ts";
import { createTokenCache, type Token } from "./token-cache.ts";

/** Options of {@link createRenewedIdentity}. */
export interface RenewedIdentityOptions extends Pick<UpstreamIdentity, "isRefusal"> {
  /** Name of the credentials in errors. */
  readonly name: string;
  fetch(): Promise<Token<UpstreamCredentials>>;
  readonly renewBeforeMs?: number | undefined;
}

/** The only subject: all calls have the same credentials. */
const ITSELF = "";
const RENEW_BEFORE_MS = 300_000;
/** Longest time to find credentials, in milliseconds. */
const FETCH_MS = 10_000;

/** Creates an identity of the gateway itself, whose credentials are renewed before they expire. */
export function createRenewedIdentity(options: RenewedIdentityOptions): UpstreamIdentity {
  const { name, renewBeforeMs = RENEW_BEFORE_MS, isRefusal } = options;
  const cache = createTokenCache<UpstreamCredentials>({
    async fetch() {
      try {
        return await whileWaiting(options.fetch(), AbortSignal.timeout(FETCH_MS));
      } catch (cause) {
        throw new LanceError("ServiceUnavailable", `the gateway has no ${name}`, { cause });
      }
    },
    scopeOf: () => "provider",
    renewBeforeMs,
    maxTokens: 1,
  });
  return {
    isOwn: true,
    ...(isRefusal !== undefined && { isRefusal }),
    credentials(call) {
      const found = cache.get(ITSELF);
      return found instanceof Promise ? whileWaiting(found, call.signal) : found;
    },
    refused: (_, credentials) => cache.refuse(ITSELF, credentials),
  };
}
