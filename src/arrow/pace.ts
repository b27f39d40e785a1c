import { setImmediate as nextTurn } from "node:timers/promises";

/** Longest work without a pause, in milliseconds. */
const STRETCH_MS = 10;

/** Decides when long work must yield the event loop. */
export interface Pace {
  /** Starts a stretch of work. */
  begin(): void;
  /** Whether a pause is due. */
  isDue(): boolean;
  /** Lets waiting work run, and starts the next stretch. */
  pause(): Promise<void>;
}

/** Creates a pace; the first stretch starts now. */
export function createPace(): Pace {
  let since = performance.now();
  const begin = () => {
    since = performance.now();
  };
  return {
    begin,
    isDue: () => performance.now() - since > STRETCH_MS,
    async pause() {
      await nextTurn();
      begin();
    },
  };
}
