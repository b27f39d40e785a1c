import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";

/** Property of a table that says whether the cache on disk keeps the table's files. */
export const CACHE_PROPERTY = "lance-gateway.cache";

/** Tables that the cache on disk keeps. */
export interface CachePins {
  /** Names of the tables that an option names, as `$` joins them. */
  readonly names: ReadonlySet<string>;
  isPinned(table: {
    readonly id: Identifier;
    readonly properties: Readonly<Record<string, string>>;
  }): boolean;
}

/** Creates the pins of the tables that an option names, and of those whose property says so; a property `off` overrides the option. */
export function createCachePins(names: readonly string[] = []): CachePins {
  const pinned = new Set(names);
  return {
    names: pinned,
    isPinned: ({ id, properties }) => {
      const own = properties[CACHE_PROPERTY];
      return own === "pin" || (own !== "off" && pinned.has(joinIdentifier(id)));
    },
  };
}

/** @throws LanceError InvalidInput for a value of the property that means nothing */
export function checkCacheProperty({ [CACHE_PROPERTY]: value }: Readonly<Record<string, string>>): void {
  if (value === undefined || value === "pin" || value === "off") return;
  throw new LanceError("InvalidInput", `the property ${CACHE_PROPERTY} must be pin or off`);
}
