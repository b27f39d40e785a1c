import { keyIn, listNames } from "../../format/storage.ts";
import { isStagingName, measure } from "../../format/table-files.ts";
import type { DirContext } from "../context.ts";

type SweepContext = Pick<DirContext, "store" | "layout" | "clock" | "log">;

/** Age of a staging directory from which its process must have ended, in milliseconds. */
const STALE_AFTER = 24 * 60 * 60 * 1000;

/** Interval between looks, in milliseconds. */
const SWEEP_MS = 60 * 60 * 1000;

/**
 * Removes what processes that ended suddenly, writes without an end and failed removals have left: directories of staged data in which
 * the storage saw no write for a day. Only the storage's clock counts, because servers' clocks may be wrong by more. It resolves after the
 * first look.
 *
 * @param repeats whether it looks again every hour
 * @returns the function that ends it
 */
export async function startStagingSweep(
  context: SweepContext,
  repeats: boolean,
): Promise<() => Promise<void>> {
  await sweep(context);
  let sweeping = Promise.resolve();
  const again = () => {
    sweeping = sweeping.then(() => sweep(context));
  };
  const timer = repeats ? setInterval(again, SWEEP_MS).unref() : undefined;
  return async () => {
    clearInterval(timer);
    await sweeping;
  };
}

async function sweep({ store, layout: { baseKey }, clock, log }: SweepContext): Promise<void> {
  try {
    const names = (await listNames(store, baseKey)).filter((name) => isStagingName(name));
    if (names.length === 0) return;
    const stale = (await clock.now()) - STALE_AFTER;
    for (const name of names) {
      const directory = keyIn(baseKey, name);
      const { modifiedMillis } = await measure(store, directory);
      if (modifiedMillis !== undefined && modifiedMillis < stale) await store.deleteDirectory(directory);
    }
  } catch (error) {
    log.warn({ err: error }, "what uploads left behind cannot be removed, and is looked for again later");
  }
}
