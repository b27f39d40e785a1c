/**
 * Waits for a request up to a limit, in milliseconds, where what makes it takes no limit, or ignores it. The request goes on, and
 * may be carried out later.
 *
 * @param lateError makes the error after the limit
 */
export async function within<T>(limit: number, request: Promise<T>, lateError: () => Error): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(lateError()), limit);
  try {
    return await Promise.race([request, late]);
  } finally {
    clearTimeout(timer);
  }
}
