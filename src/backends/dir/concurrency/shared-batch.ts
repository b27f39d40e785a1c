import { createSharedCheck } from "../../../runtime/shared-check.ts";

/**
 * Shares work among concurrent callers, each of which brings an item. The items whose callers arrive while a batch runs
 * are the next batch.
 *
 * @param work gets the items of a batch; all of its callers get the result
 */
export function createSharedBatch<I, T>(
  work: (items: ReadonlySet<I>) => Promise<T>,
): (item: I) => Promise<T> {
  let waiting = new Set<I>();
  const workOnWaiting = createSharedCheck(() => {
    const items = waiting;
    waiting = new Set();
    return work(items);
  });
  return (item) => {
    waiting.add(item);
    return workOnWaiting();
  };
}
