import { enableCompileCache } from "node:module";

/** Whether the program runs from its sources, of which Node would remove the types again at each start. */
const FROM_SOURCES = import.meta.filename.endsWith(".ts");

/**
 * Lets Node keep the code that is loaded from here on, which is nearly everything, for the next start. Node also keeps the cache
 * in memory until the process ends, for which a gateway runs too long (docs/adr/0003).
 */
export function cacheCode(isGateway: boolean): void {
  if (FROM_SOURCES || !isGateway) enableCompileCache();
}
