import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Place, ReadAhead } from "./read-ahead.ts";

/** A call that waits for room in the memory of results. */
export interface WaitingCall {
  readonly call: { readonly signal: AbortSignal };
  readonly readAhead: ReadAhead;
}

/**
 * Reads in room of the memory for results, until the engine has ended it: a call that is cancelled cannot stop the engine.
 *
 * @param bytes number of bytes that the engine holds; for 0 the work needs no room
 * @throws LanceError the errors of {@link ReadAhead.enter} and of the work
 */
export function inRoom<T>(
  bytes: number,
  { call, readAhead }: WaitingCall,
  work: () => Promise<T>,
): Promise<T> {
  return inPlace(bytes, () => readAhead.enter(bytes, call.signal), work);
}

/** Runs the engine work of a change like {@link inRoom}, in the share of {@link ReadAhead.enterForWork}. */
export function inRoomOfChange<T>(
  bytes: number,
  { call, readAhead }: WaitingCall,
  work: () => Promise<T>,
): Promise<T> {
  return inPlace(bytes, () => readAhead.enterForWork(bytes, call.signal), work);
}

/** Interval at which a job looks for room, in milliseconds. */
const LOOK_MS = 250;

/** Runs the engine work of a job like {@link inRoomOfChange}. A job waits until there is room, and lets waiting results go first. */
export function inRoomOfJob<T>(
  bytes: number,
  { call: { signal }, readAhead }: WaitingCall,
  work: () => Promise<T>,
): Promise<T> {
  const enter = async () => {
    for (;;) {
      const place = readAhead.tryEnter(bytes);
      if (place !== undefined) return place;
      await sleep(LOOK_MS, undefined, { signal });
    }
  };
  return inPlace(bytes, enter, work);
}

async function inPlace<T>(bytes: number, enter: () => Promise<Place>, work: () => Promise<T>): Promise<T> {
  if (bytes === 0) return work();
  const place = await enter();
  try {
    return await work();
  } finally {
    place.leave();
  }
}

/**
 * Refuses work for which the engine would hold more than half of the free memory. It has no bound of its own, and ends the process when the
 * memory does not suffice.
 *
 * @param advice what the client can do instead
 * @throws LanceError InvalidInput
 */
export function checkMemory(bytes: number, advice: string): void {
  if (bytes <= process.availableMemory() / 2) return;
  throw new LanceError(
    "InvalidInput",
    `the engine would gather about ${Math.ceil(bytes / 2 ** 20)} MiB before the first row, which is more than half of the free memory; ${advice}`,
  );
}
