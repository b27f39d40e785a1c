/**
 * Returns a function that waits for work, but not beyond the failure of `end`. It is for work that is repeated, such as the pieces of a
 * stream: `Promise.race` would keep all of its results in memory until `end` fails or is collected itself.
 */
export function beforeEnd(end: Promise<never>): <T>(work: Promise<T>) => Promise<T> {
  let refuse: ((reason: unknown) => void) | undefined;
  let isOver = false;
  end.catch((reason: unknown) => {
    isOver = true;
    refuse?.(reason);
  });
  return (work) =>
    new Promise((resolve, reject) => {
      refuse = reject;
      if (isOver) end.catch(reject);
      work.then(resolve, reject);
    });
}
