import type { ClientBinding } from "../../transcode/client-binding.ts";

/**
 * How long a refused HTTP method is avoided, in milliseconds: a 405 may come from a proxy, or from an old replica.
 */
const MEMORY_MS = 60_000;

/** Remembers temporarily which HTTP methods an upstream refuses, for operations that have two. */
export interface MethodMemory {
  /** Returns the forms of an operation, with the one to try first in front. */
  inOrder(binding: ClientBinding): readonly [ClientBinding, ClientBinding | undefined];
  /** Records that the upstream refused a form of an operation and accepted the other. */
  remember(binding: ClientBinding, refused: ClientBinding): void;
}

/** Creates an empty memory; it holds at most one entry for each operation. */
export function createMethodMemory(): MethodMemory {
  const refusals = new Map<ClientBinding, { readonly refused: ClientBinding; readonly until: number }>();

  return {
    inOrder(binding) {
      const { alternative } = binding;
      const known = refusals.get(binding);
      if (alternative === undefined || known === undefined) return [binding, alternative];
      if (Date.now() >= known.until) {
        refusals.delete(binding);
        return [binding, alternative];
      }
      return known.refused === binding ? [alternative, binding] : [binding, alternative];
    },
    remember(binding, refused) {
      refusals.set(binding, { refused, until: Date.now() + MEMORY_MS });
    },
  };
}
