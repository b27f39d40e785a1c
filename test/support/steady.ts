import { setTimeout as sleep } from "node:timers/promises";

const LOOKS = 10;
const PAUSE_MS = 10;

/** Resolves to a number once it is above zero and has stayed constant for ten looks in a row. */
export async function steady(read: () => number): Promise<number> {
  let [last, same] = [read(), 0];
  while (last === 0 || same < LOOKS) {
    await sleep(PAUSE_MS);
    const next = read();
    same = next === last ? same + 1 : 0;
    last = next;
  }
  return last;
}
