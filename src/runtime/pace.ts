import { setImmediate as nextTurn } from "node:timers/promises";
import { types } from "node:util";

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
  /** Pauses if a pause is due. */
  pauseIfDue(): Promise<void>;
}

/** Creates a pace; the first stretch starts now. */
export function createPace(): Pace {
  let since = performance.now();
  const begin = () => {
    since = performance.now();
  };
  const isDue = () => performance.now() - since > STRETCH_MS;
  const pause = async () => {
    await nextTurn();
    begin();
  };
  return {
    begin,
    isDue,
    pause,
    async pauseIfDue() {
      if (isDue()) await pause();
    },
  };
}

/** Work in steps, each of which takes much less than {@link STRETCH_MS}; the last one returns its result. */
export type Steps<T> = Generator<void, T, void>;

/** Yields at every so many items of a loop, so that a look at the clock costs little beside the work on them. */
export const ITEMS_PER_STEP = 512;

/** Whether a map has more entries than a step takes. */
export function isLongMap(map: object): boolean {
  let entries = 0;
  for (const _key in map) if (++entries > ITEMS_PER_STEP) return true;
  return false;
}

/**
 * Runs steps, and lets waiting work run whenever a stretch of them is over.
 *
 * @param onPause called after each pause; an error that it throws ends the work
 */
export async function inSlices<T>(steps: Steps<T>, onPause: () => void = () => {}): Promise<T> {
  const pace = createPace();
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    if (!pace.isDue()) continue;
    await pace.pause();
    onPause();
  }
}

/** Runs steps without a pause, where there are few. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Runs the steps that work returns, as steps of other work; other results it returns as they are. */
export function* stepsOf<T>(result: T | Steps<T>): Steps<T> {
  yield;
  return isSteps(result) ? yield* result : result;
}

function isSteps<T>(result: T | Steps<T>): result is Steps<T> {
  return types.isGeneratorObject(result);
}
