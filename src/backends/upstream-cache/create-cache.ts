import type { NoteDecision } from "../../namespace/figures/decisions.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import type { SignRequest, UpstreamCredentials, UpstreamIdentity } from "../upstream-identity/identity.ts";
import { createDescribeCache, type DescribeCache, type UpstreamCacheLimits } from "./cache.ts";

/**
 * Properties of an upstream that a cache needs: the headers that identify callers, and the counter of its decisions.
 */
export interface CachedUpstream {
  readonly policy: HeaderPolicy;
  readonly identity: UpstreamIdentity;
  readonly noteDecision?: NoteDecision | undefined;
}

/** Creates the cache in front of an upstream, or a function that returns handlers unchanged. */
export function createUpstreamCache(
  limits: UpstreamCacheLimits | undefined,
  { policy, identity, noteDecision }: CachedUpstream,
): DescribeCache {
  if (limits === undefined || limits.ttlMs === 0) return (_, handlers) => ({ ...handlers });
  return createDescribeCache({
    ...limits,
    noteDecision,
    principalOf(call) {
      const pairs = policy.varying(call);
      const withCredentials = (credentials: UpstreamCredentials) => {
        if (typeof credentials === "function") pairs.push("signer", signerId(credentials));
        else policy.addCredentials(pairs, credentials);
        return pairs;
      };
      const found = identity.credentials(call);
      return found instanceof Promise ? found.then(withCredentials) : withCredentials(found);
    },
  });
}

const signers = new WeakMap<SignRequest, string>();
let lastSigner = 0;

/** Signatures differ in every request, so the signer identifies a caller. */
function signerId(sign: SignRequest): string {
  const known = signers.get(sign);
  if (known !== undefined) return known;
  lastSigner += 1;
  signers.set(sign, String(lastSigner));
  return String(lastSigner);
}
