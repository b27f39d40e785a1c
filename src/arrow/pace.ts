import { setImmediate as nextTurn } from "node:timers/promises";

/** How long work may go on without a pause, in milliseconds. */
const STRETCH_MS = 10;

/** Says when work that takes long has to let others have the event loop. */
export interface Pace {
  /** Begins a stretch of work. */
  begin(): void;
  /** Whether a pause is due. */
  isDue(): boolean;
  /** Lets everything run that waits, and begins the next stretch. */
  pause(): Promise<void>;
}

/** Creates a pace; the work begins now. */
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
