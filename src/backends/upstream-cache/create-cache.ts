import type { NoteDecision } from "../../namespace/decisions.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import type { CredentialHeaders, UpstreamIdentity } from "../upstream-identity/identity.ts";
import { createDescribeCache, type DescribeCache, type UpstreamCacheLimits } from "./cache.ts";

/** What a cache has to know of its upstream: by which headers it knows callers, and who counts its decisions. */
export interface CachedUpstream {
  readonly policy: HeaderPolicy;
  readonly identity: UpstreamIdentity;
  readonly noteDecision?: NoteDecision | undefined;
}

/** Creates the cache before one upstream, or what leaves handlers as they are. */
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
      const withCredentials = (credentials: CredentialHeaders) => {
        policy.addCredentials(pairs, credentials);
        return pairs;
      };
      const found = identity.credentials(call);
      return found instanceof Promise ? found.then(withCredentials) : withCredentials(found);
    },
  });
}
