/** Returns the value of a shared promise, or throws the signal's reason if that is first. */
export function whileWaiting<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}
