import { setImmediate as turnOfLoop } from "node:timers/promises";
import type { Interceptor } from "./interceptor.ts";

/** Number of bytes of bodies that pass in a turn of the event loop. */
export const TURN_BYTES = 512 * 1024;

/**
 * Shares the turns of the event loop among the bodies that arrive in a process.
 *
 * Node reads up to 2 MiB from each connection in a turn, but accepts only one new connection. Without a bound for all
 * bodies together, a connection waits for the bodies of every connection that was made before it.
 */
export interface BodyPace {
  /** Takes bytes from what may pass in this turn; when nothing is left, returns a promise of a later turn. */
  pass(bytes: number): Promise<void> | undefined;
  /** Notes that a connection was accepted: others may wait, so only one piece passes in each turn until none comes. */
  noteConnection(): void;
}

/**
 * Creates a pace.
 *
 * @param nextTurn resolves in the next turn of the loop
 */
export function createBodyPace(nextTurn: () => Promise<unknown> = () => turnOfLoop()): BodyPace {
  const waiting: (() => void)[] = [];
  let left = TURN_BYTES;
  let [connected, renewing] = [false, false];

  async function renew(): Promise<void> {
    if (renewing) return;
    renewing = true;
    while (left < TURN_BYTES) {
      await nextTurn();
      left = connected ? 1 : TURN_BYTES;
      connected = false;
      while (left > 0 && waiting.length > 0) waiting.shift()?.();
    }
    renewing = false;
  }
  function take(bytes: number): void {
    left -= bytes;
    void renew();
  }
  return {
    pass(bytes) {
      if (bytes === 0) return undefined;
      if (left > 0 && waiting.length === 0) {
        take(bytes);
        return undefined;
      }
      return new Promise<void>((resolve) => {
        waiting.push(() => {
          take(bytes);
          resolve();
        });
      });
    },
    noteConnection() {
      connected = true;
      left = Math.min(left, 1);
      void renew();
    },
  };
}

/** Passes the bodies of uploads on at a pace. */
export function paceUploads(pace: BodyPace): Interceptor {
  return (call, request, next) =>
    next(call, request.kind === "upload" ? { ...request, data: paced(request.data, pace) } : request);
}

async function* paced(data: AsyncIterable<Uint8Array>, pace: BodyPace): AsyncGenerator<Uint8Array> {
  for await (const piece of data) {
    const turn = pace.pass(piece.byteLength);
    if (turn !== undefined) await turn;
    yield piece;
  }
}
