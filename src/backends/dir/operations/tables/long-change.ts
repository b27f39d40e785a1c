import { startStopwatch } from "../../../../runtime/time/stopwatch.ts";
import type { DataContext } from "../../data/data-context.ts";

/**
 * Time after which a change is noted, in milliseconds. Pruning leaves a version for three times as long after another has
 * replaced it.
 */
const NOTE_AFTER_MS = 10_000;

/**
 * Prepares to note a change of a table that takes long, in the storage. The engine computes a change on the version at its beginning
 * and looks at the later ones for conflicts; it does not miss those that another process has pruned.
 *
 * @returns does the change, and notes it for the rest of its time when it has taken long since the preparation
 */
export function startLongChange({ work }: Pick<DataContext, "work">, location: string) {
  const sinceOpen = startStopwatch();
  return async <T>(change: () => Promise<T>): Promise<T> => {
    let noted: Promise<(() => Promise<void>) | undefined> | undefined;
    const note = () => {
      // Without the note, a change is as safe as one that is short.
      noted = work.begin(location).catch(() => undefined);
    };
    const timer = setTimeout(note, NOTE_AFTER_MS - sinceOpen()).unref();
    try {
      return await change();
    } finally {
      clearTimeout(timer);
      await (await noted)?.();
    }
  };
}
