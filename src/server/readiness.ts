/** Whether calls can be answered now; `/readyz` and the gRPC health service both tell it. */
export interface Readiness {
  readonly ready: boolean;
  /** Whether the server is going away for good. */
  readonly closed: boolean;
  set(ready: boolean): void;
  /** Calls back after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Makes it not ready for good, so that nobody waits for it any longer. */
  close(): void;
}

/** A readiness that begins as not ready. */
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
