import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { onTestFinished } from "vitest";

/** Makes a named pipe in place of a file: its readers wait, as for a network's file system that does not answer, until the test ends. */
export async function makeSilentFile(path: string): Promise<void> {
  execFileSync("mkfifo", [path]);
  const writer = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => writer.close());
}
