// Preloaded into a gateway: measures how long its event loop is held at a time, and answers the benchmark's messages.
import { readFileSync } from "node:fs";

/** The figures of a gateway since the last message, in milliseconds. */
export interface LoopFigures {
  /** Longest time without a turn, without the time for which the thread waited for a core. */
  readonly held: number;
  /** Most computing time of the thread without a turn. */
  readonly computed: number;
}

const EVERY_MS = 1;
const ACCOUNTS = `/proc/${process.pid}/task/${process.pid}/schedstat`;

/** Returns the time, and what the thread has computed and waited for a core, in milliseconds. */
function accounts(): { at: number; computed: number; waited: number } {
  const [computed = 0, waited = 0] = readFileSync(ACCOUNTS, "latin1").split(" ").map(Number);
  return { at: performance.now(), computed: computed / 1e6, waited: waited / 1e6 };
}

let last = accounts();
let figures = { held: 0, computed: 0 };

function look(): void {
  const now = accounts();
  const computed = now.computed - last.computed;
  const held = now.at - last.at - (now.waited - last.waited) - EVERY_MS;
  figures = { held: Math.max(figures.held, held), computed: Math.max(figures.computed, computed) };
  last = now;
}

setInterval(look, EVERY_MS).unref();
process.on("message", () => {
  look();
  process.send?.(figures);
  figures = { held: 0, computed: 0 };
});
process.channel?.unref();
