import type { SharedCounter } from "../../runtime/threads/sharing.ts";
import type { Slots } from "./slots.ts";

/**
 * Evicts all values when another worker of the process has cleared some, so that a caller that was answered by one
 * worker sees its write through all of them.
 *
 * @param clears number of times that workers have cleared objects. Default: there is a single worker.
 */
export function shareClears<T>(slots: Slots<T>, clears: SharedCounter | undefined): Slots<T> {
  if (clears === undefined) return slots;
  let seen = clears.value;

  function followOthers(): void {
    const { value } = clears as SharedCounter;
    if (value === seen) return;
    seen = value;
    slots.clear([]);
  }
  return {
    ...slots,
    get(key) {
      followOthers();
      return slots.get(key);
    },
    has(key, value) {
      followOthers();
      return slots.has(key, value);
    },
    clear(id) {
      slots.clear(id);
      if (clears.increment() === seen) seen++;
    },
  };
}
