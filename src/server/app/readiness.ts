/** Whether the server can answer calls now, for `/readyz` and the gRPC health service. */
export interface Readiness {
  readonly ready: boolean;
  /** Whether the server is shutting down. */
  readonly closed: boolean;
  set(ready: boolean): void;
  /** Calls back after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Makes it permanently not ready, so that nothing waits for it any longer. */
  close(): void;
}

/** Creates a readiness that starts as not ready. */
export function createReadiness(): Readiness {
  const listeners = new Set<() => void>();
  let ready = false;
  let closed = false;

  function change(toReady: boolean, toClosed: boolean): void {
    if (closed || (toReady === ready && !toClosed)) return;
    ready = toReady;
    closed = toClosed;
    for (const listener of [...listeners]) listener();
  }

  return {
    get ready() {
      return ready;
    },
    get closed() {
      return closed;
    },
    set: (toReady) => change(toReady, false),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => change(false, true),
  };
}
