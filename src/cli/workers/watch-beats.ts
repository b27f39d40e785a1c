import type { SharedMemory } from "./shared-memory.ts";

/** How often the beats are looked at within the time after which a worker counts as blocked. */
const LOOKS = 10;
/** How many times as long a worker may take that starts: it loads the engine, which holds its event loop. */
const STARTING = 10;

/** The watch over the event loops of workers. */
export interface BeatWatch {
  /** Watches a worker from now on; one that only starts may be silent for ten times as long. */
  begin(worker: number, isStarting: boolean): void;
  end(worker: number): void;
  close(): void;
}

/**
 * Watches whether the event loops of workers turn. It counts its own looks instead of time: when the whole process was
 * suspended, no worker is to blame.
 *
 * @param onBlocked called once for a worker whose loop has not turned for `timeoutMs` milliseconds
 */
export function watchBeats(
  memory: SharedMemory,
  timeoutMs: number,
  onBlocked: (worker: number) => void,
): BeatWatch {
  const watched = new Map<number, { beats: number; silentLooks: number; readonly maxLooks: number }>();

  function look(): void {
    for (const [worker, seen] of watched) {
      const beats = memory.beatsOf(worker);
      seen.silentLooks = beats === seen.beats ? seen.silentLooks + 1 : 0;
      seen.beats = beats;
      if (seen.silentLooks < seen.maxLooks) continue;
      watched.delete(worker);
      onBlocked(worker);
    }
  }
  const timer = setInterval(look, timeoutMs / LOOKS).unref();
  return {
    begin(worker, isStarting) {
      const maxLooks = isStarting ? LOOKS * STARTING : LOOKS;
      watched.set(worker, { beats: memory.beatsOf(worker), silentLooks: 0, maxLooks });
    },
    end: (worker) => watched.delete(worker),
    close: () => clearInterval(timer),
  };
}
