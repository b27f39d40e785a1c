/** What a backend may decide about its upstream, in calls and between them, with what it means for people. */
export const UPSTREAM_DECISIONS = {
  retry: "The request was sent once more.",
  retry_refused_by_budget: "It could have been sent once more, but too many others had been.",
  circuit_open:
    "The upstream failed so often that it is not called for a while; also of each call that is refused meanwhile.",
  circuit_half_open: "One call tries whether the upstream is back.",
  hedge: "A second request was sent because the first one took long.",
  hedge_won: "The second one answered first.",
  crowded: "So many calls were under way and waited that this one was not sent.",
  ejected: "An address is left out because it fails more often than the others.",
  readmitted: "It is called again.",
  cache_hit: "The answer was kept from an earlier call, or came with that of another one.",
  cache_miss: "It could have been, and the upstream was asked.",
  cache_revalidated: "The upstream was asked, and said that the kept answer still holds.",
} as const satisfies Record<string, string>;

/** One of them. */
export type UpstreamDecision = keyof typeof UPSTREAM_DECISIONS;

/** Counts a decision that is no call's own, such as the end of an ejection. */
export type NoteDecision = (decision: UpstreamDecision) => void;
