import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a condition holds, for as long as its test may take. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}
