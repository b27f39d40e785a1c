import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Identifier, parseIdentifier } from "../../../../namespace/identifier.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { walkTables } from "../../catalog/walk.ts";
import { latestVersion } from "../../format/versions/version-files.ts";
import type { CatalogDataContext, ReadContext } from "../context.ts";
import { findTable } from "../tables/find-table.ts";
import { objectIdOf } from "../tables/naming/object-names.ts";
import { datasetOf } from "../tables/open-data.ts";
import { createCachePins } from "./pins.ts";
import { cacheableFiles } from "./prewarm.ts";

/** Times of the work on pinned tables, in milliseconds. */
export interface PinTimes {
  /** Interval at which pinned tables are looked at. */
  readonly lookMs: number;
  /** Interval at which the catalog is searched for tables with the property. */
  readonly searchMs: number;
}

export const PIN_TIMES: PinTimes = { lookMs: 10_000, searchMs: 60_000 };

/** Time between two searches, as a multiple of the time that one takes. */
const SEARCH_SHARE = 100;

/** State of a pinned table when it was last read into the cache. */
interface Filled {
  readonly version: bigint;
  /** Number of times that the version was read again after blocks had left: the pause doubles, since there may be too little room. */
  readonly again: number;
  /** Time from which on it may be read again, in milliseconds of `performance.now`. */
  readonly notBefore: number;
  readonly keys: readonly string[];
  /** Size of its blocks in the cache after that. */
  readonly bytes: number;
}

/**
 * Keeps the files of pinned tables in the cache on disk: reads those of each new version, and those that have left for lack of room.
 *
 * @returns a function that ends the work; undefined without a cache
 */
export function startKeepingPinned(
  context: CatalogDataContext & ReadContext & { readonly log: Logger },
  { lookMs, searchMs }: PinTimes = PIN_TIMES,
): (() => Promise<void>) | undefined {
  const { cache, catalog, pins = createCachePins(), log } = context;
  if (cache === undefined) return undefined;
  const stop = new AbortController();
  const { signal } = stop;
  const filled = new Map<string, Filled>();
  let searchAt = 0;
  let searched: CatalogView | undefined;
  let withProperty: Identifier[] = [];

  async function search(): Promise<void> {
    const now = performance.now();
    if (now < searchAt) return;
    const state = await catalog.read();
    if (state === searched) return;
    const found: Identifier[] = [];
    for await (const id of walkTables(catalog)) {
      const properties = catalog.known().get(objectIdOf(id))?.properties ?? {};
      if (pins.isPinned({ id, properties })) found.push(id);
    }
    withProperty = found;
    searched = state;
    // In a catalog of a million tables, a search takes a while.
    searchAt = now + Math.max(searchMs, SEARCH_SHARE * (performance.now() - now));
  }
  const sizeOf = async (keys: readonly string[]) =>
    ((await cache?.measure(keys, signal)) ?? []).reduce((sum, bytes) => sum + bytes, 0);

  async function keep(id: Identifier): Promise<void> {
    const table = await findTable(context, await catalog.read(), id);
    const key = objectIdOf(id);
    if (table === undefined || !pins.isPinned(table)) return void filled.delete(key);
    const dataset = datasetOf(context, table);
    const newest = await latestVersion(dataset);
    if (newest === undefined) return;
    const known = filled.get(key);
    const isSame = known?.version === newest.version;
    const isDue = !isSame || performance.now() >= known.notBefore;
    if (!isDue || (isSame && (await sizeOf(known.keys)) >= known.bytes)) return;
    const { indices, data } = await cacheableFiles(dataset);
    const keys = [...indices.keys, ...data.keys];
    await cache?.fill(keys, signal);
    const again = isSame ? known.again + 1 : 0;
    const notBefore = performance.now() + lookMs * 2 ** again;
    filled.set(key, { version: newest.version, again, notBefore, keys, bytes: await sizeOf(keys) });
  }
  async function run(): Promise<void> {
    while (!signal.aborted) {
      await search().catch((error: unknown) =>
        log.warn({ err: error }, "pinned tables cannot be looked for"),
      );
      const named = [...pins.names].map((name) => parseIdentifier(name));
      const all = new Map([...withProperty, ...named].map((id) => [objectIdOf(id), id]));
      for (const id of all.values()) {
        if (signal.aborted) break;
        await keep(id).catch((error: unknown) => {
          if (!signal.aborted)
            log.warn({ err: error, table: objectIdOf(id) }, "a pinned table cannot be cached");
        });
      }
      await sleep(lookMs, undefined, { ref: false, signal }).catch(() => {});
    }
  }
  const running = run();
  return async () => {
    stop.abort(new Error("the gateway ends"));
    await running;
  };
}
