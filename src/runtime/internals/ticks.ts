import { executionAsyncResource } from "node:async_hooks";

const kept: object[] = [];

/**
 * Keeps `process.nextTick` fast in this thread. Node writes a tick as an object literal with computed keys. V8 forgets the hidden class
 * of that literal when it collects garbage to save memory while no tick waits, as in an idle gateway, and never compiles it again: each
 * later tick takes six times as long, and a call over HTTP has five of them. A tick that is kept keeps the class alive, too
 * (docs/adr/0028). A thread calls this before it is idle for the first time.
 */
export function keepTicksFast(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}
