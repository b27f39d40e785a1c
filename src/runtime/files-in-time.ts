import type { BigIntStats } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { within } from "./within.ts";

/** Longest wait for a file system, in milliseconds: that of a network may not answer. */
const ANSWER_MS = 10_000;

/** Longest wait for files when the process ends, in milliseconds. */
const END_MS = 1_000;

/**
 * Requests that were not answered in time. Each holds one of the few threads of the pool until it is answered, so that it is not
 * repeated before.
 */
const unanswered = new Set<string>();

/** Requests that are not answered yet. */
const pending = new Set<Promise<unknown>>();

/** Whether the files that are being read answer within a second. The end of a process waits for all threads of the pool. */
export function filesAnswer(): Promise<boolean> {
  const late = () => new Error("late");
  return within(END_MS, Promise.allSettled(pending), late).then(
    () => true,
    () => false,
  );
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
  pending.add(answer);
  const over = () => void pending.delete(answer);
  answer.then(over, over);
  return within(ANSWER_MS, answer, () => {
    unanswered.add(request);
    const answered = () => void unanswered.delete(request);
    answer.then(answered, answered);
    return late();
  });
}
