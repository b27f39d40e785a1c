import type { WorkerThread } from "./worker-thread.ts";

/** Whether a process with workers can answer calls. */
export interface CrewReadiness {
  readonly ready: boolean;
  /** Looks at the workers again. */
  update(): void;
}

/**
 * Creates the readiness of a process: at first all workers must be ready. A worker that replaces another one counts as
 * soon as it has been ready, so that the process stays ready meanwhile.
 *
 * @param size number of workers
 * @param serving returns the workers that listen now
 * @param onChange called after each change
 */
export function createCrewReadiness(
  size: number,
  serving: () => readonly WorkerThread[],
  onChange: (ready: boolean) => void,
): CrewReadiness {
  const wereReady = new WeakSet<WorkerThread>();
  let [hasBegun, ready] = [false, false];

  function isReady(): boolean {
    const workers = serving();
    for (const worker of workers) if (worker.ready) wereReady.add(worker);
    if (!hasBegun) return workers.length === size && workers.every((worker) => worker.ready);
    const counted = workers.filter((worker) => wereReady.has(worker));
    return counted.length > 0 && counted.every((worker) => worker.ready);
  }
  return {
    get ready() {
      return ready;
    },
    update() {
      const now = isReady();
      if (now === ready) return;
      hasBegun = true;
      ready = now;
      onChange(ready);
    },
  };
}
