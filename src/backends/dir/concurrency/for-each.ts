/** Works on values, a bounded number at a time and in their order; the first failure ends the work. */
export async function forEachOf<T>(
  values: Iterable<T>,
  atATime: number,
  work: (value: T) => Promise<unknown>,
): Promise<void> {
  const rest = values[Symbol.iterator]();
  let failed = false;
  const worker = async () => {
    for (let next = rest.next(); !next.done && !failed; next = rest.next()) {
      await work(next.value).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}
