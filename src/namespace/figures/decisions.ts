/** The decisions of a backend about its upstream, during calls and between them, each with its meaning for people. */
export const UPSTREAM_DECISIONS = {
  retry: "The gateway sent the request again.",
  retry_refused_by_budget: "The request could have been retried, but the retry budget was exhausted.",
  circuit_open:
    "The circuit of an address opened after too many failures; also counted for each call that the open circuit rejects.",
  circuit_half_open: "A single call probes whether the address works again.",
  hedge: "The gateway sent a second request because the first one took long.",
  hedge_won: "The second request answered first.",
  crowded: "The call was rejected because too many calls were in flight and waiting.",
  ejected: "The gateway ejected an address that fails more often than the others.",
  readmitted: "The gateway calls an ejected address again.",
  cache_hit: "The answer came from the cache, or from a concurrent equal request.",
  cache_miss: "The answer could have been cached, and the gateway asked the upstream.",
  cache_revalidated: "The upstream confirmed that the cached answer is still valid.",
} as const satisfies Record<string, string>;

/** A key of {@link UPSTREAM_DECISIONS}. */
export type UpstreamDecision = keyof typeof UPSTREAM_DECISIONS;

/** Counts a decision that belongs to no call, such as the end of an ejection. */
export type NoteDecision = (decision: UpstreamDecision) => void;
