import type { BigIntStats } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { within } from "./within.ts";

/** Longest wait for a file system, in milliseconds: that of a network may not answer. */
const ANSWER_MS = 10_000;

/**
 * Requests that were not answered in time. Each holds one of the few threads of the pool until it is answered, so that it is not
 * repeated before.
 */
const unanswered = new Set<string>();

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
  return within(ANSWER_MS, answer, () => {
    unanswered.add(request);
    const answered = () => void unanswered.delete(request);
    answer.then(answered, answered);
    return late();
  });
}
