import type { Identifier } from "../../../namespace/identifier.ts";
import { putNewest } from "../../../runtime/put-newest.ts";

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
    confirm: (id) => void putNewest(known, keyOf(id), now() + MEMORY_MS, MAX_SPELLINGS),
    isConfirmed: (id) => (known.get(keyOf(id)) ?? 0) > now(),
  };
}
