import type { BigIntStats } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { monotonicNow } from "../clocks.ts";
import { within } from "../promises.ts";
import { type SharedQuantity, UNSHARED } from "../threads/sharing.ts";

/** Longest wait for a file system, in milliseconds: that of a network may not answer. */
const ANSWER_MS = 10_000;

/** Longest wait for files when the process ends, in milliseconds. */
const END_MS = 1_000;

/** Pause between looks at the requests meanwhile, in milliseconds. */
const LOOK_MS = 20;

/**
 * Requests that were not answered in time. Each holds one of the few threads of the pool until it is answered, so that it is not
 * repeated before.
 */
const unanswered = new Set<string>();

/** Number of requests of this thread that are not answered yet. */
let pending = 0;

/** Those of all threads. */
let shared = UNSHARED;

/** Has threads know of each other's requests. */
export function shareFiles(quantity: SharedQuantity): void {
  shared = quantity;
}

/** Whether the files that the process reads answer within a second. Its end waits for all threads of the pool. */
export async function filesAnswer(): Promise<boolean> {
  const end = monotonicNow() + END_MS;
  while (pending + shared.others > 0) {
    if (monotonicNow() > end) return false;
    await sleep(LOOK_MS);
  }
  return true;
}

/** Reads a file of text. It rejects with the code `ETIMEDOUT` if the file system does not answer within 10 s. */
export async function readText(path: string): Promise<string> {
  // A file in place of one that hangs is another one.
  const { dev, ino } = await statFile(path);
  return inTime(path, `read ${path} ${dev} ${ino}`, () => readFile(path, "utf8"));
}

/** Looks at a file; see {@link readText} for a file system that does not answer. */
export function statFile(path: string): Promise<BigIntStats> {
  return inTime(path, `stat ${path}`, () => stat(path, { bigint: true }));
}

/** Returns the names in a directory; see {@link readText} for a file system that does not answer. */
export function namesIn(directory: string): Promise<string[]> {
  return inTime(directory, `list ${directory}`, () => readdir(directory));
}

async function inTime<T>(path: string, request: string, make: () => Promise<T>): Promise<T> {
  const late = () => Object.assign(new Error(`${path} is not answered in time`), { code: "ETIMEDOUT" });
  if (unanswered.has(request)) throw late();
  const answer = make();
  count(1);
  const over = () => count(-1);
  answer.then(over, over);
  return within(ANSWER_MS, answer, () => {
    unanswered.add(request);
    const answered = () => void unanswered.delete(request);
    answer.then(answered, answered);
    return late();
  });
}

function count(change: number): void {
  pending += change;
  shared.publish(pending);
}
