import type { Identifier } from "../../../namespace/identifier.ts";

/** How long a spelling counts as the canonical one, in milliseconds. */
const MEMORY_MS = 60_000;
const MAX_SPELLINGS = 10_000;

/** Remembers which spellings of namespaces are the catalog's own; only the form of names is kept, for all callers. */
export interface Spellings {
  confirm(id: Identifier): void;
  isConfirmed(id: Identifier): boolean;
}

/** Creates an empty memory. */
export function createSpellings(now: () => number = Date.now): Spellings {
  const known = new Map<string, number>();
  const keyOf = (id: Identifier) => id.join("$");
  return {
    confirm(id) {
      const key = keyOf(id);
      known.delete(key);
      known.set(key, now() + MEMORY_MS);
      const [oldest] = known.keys();
      if (known.size > MAX_SPELLINGS && oldest !== undefined) known.delete(oldest);
    },
    isConfirmed: (id) => (known.get(keyOf(id)) ?? 0) > now(),
  };
}
