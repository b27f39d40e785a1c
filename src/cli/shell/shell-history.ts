import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { Environment } from "../../config/option-spec.ts";

/** Lines that are kept. */
export const HISTORY_LINES = 1_000;

/** Returns the path of the lines that the user has typed, in the folder that the XDG Base Directory Specification names. */
export function historyPath(environment: Environment): string {
  const { XDG_STATE_HOME: given = "", HOME: home = homedir() } = environment;
  const folder = isAbsolute(given) ? given : join(home, ".local", "state");
  return join(folder, "lance-gateway", "sql-history");
}

/** Reads the kept lines, the newest first; none without a readable file. */
export async function readHistory(path: string): Promise<string[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-HISTORY_LINES)
    .reverse();
}

/** Keeps lines, the newest first, in a file that its owner alone can read: statements may have what is secret. */
export async function writeHistory(path: string, lines: readonly string[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const part = `${path}.${process.pid}.part`;
  await writeFile(part, `${lines.slice(0, HISTORY_LINES).toReversed().join("\n")}\n`, { mode: 0o600 });
  await chmod(part, 0o600);
  await rename(part, path);
}
