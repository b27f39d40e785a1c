import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { createInterface } from "node:readline";
import type { Environment } from "../../config/option-spec.ts";

/** Lines that someone types, or that a program writes. */
export interface LineReader {
  /** Asks for the next line; undefined at the end of the input, and {@link INTERRUPTED} for Ctrl-C. */
  ask(prompt: string): Promise<string | undefined>;
  /** Calls a function for Ctrl-C while something runs. */
  whileRunning<T>(interrupt: () => void, work: () => Promise<T>): Promise<T>;
  close(): void;
}

/** Options of {@link createLineReader}. */
export interface LineReaderOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Whether a person types the lines. */
  readonly isTerminal: boolean;
  /** Former lines, the newest first. */
  readonly history: readonly string[];
  /** Called with all lines, the newest first, when one is added. */
  onHistory(lines: readonly string[]): void;
}

/** A mark that no line is. */
export const INTERRUPTED = "\u0003";

/** Reads lines with Node's readline, which edits them and goes through former ones on a terminal. */
export function createLineReader(options: LineReaderOptions): LineReader {
  const { input, output, isTerminal, history, onHistory } = options;
  const reader = createInterface({
    ...{ input, output, terminal: isTerminal, history: [...history], historySize: 1_000 },
    removeHistoryDuplicates: true,
  });
  const lines: string[] = [];
  let isOver = false;
  let wake: ((line: string | undefined) => void) | undefined;
  let interrupt: (() => void) | undefined;
  const give = (line: string) => {
    const waiting = wake;
    wake = undefined;
    if (waiting === undefined) lines.push(line);
    else waiting(line);
  };
  reader.on("line", give);
  reader.on("history", onHistory);
  reader.on("SIGINT", () => {
    if (interrupt !== undefined) return interrupt();
    // The shell gives up the typed text, as other shells do.
    reader.write(null, { ctrl: true, name: "e" });
    reader.write(null, { ctrl: true, name: "u" });
    output.write("^C\n");
    give(INTERRUPTED);
  });
  reader.once("close", () => {
    isOver = true;
    wake?.(undefined);
  });
  return {
    async ask(prompt) {
      const waiting = lines.shift();
      if (waiting !== undefined) return waiting;
      if (isOver) return undefined;
      const next = Promise.withResolvers<string | undefined>();
      wake = next.resolve;
      if (isTerminal) {
        reader.setPrompt(prompt);
        reader.prompt();
      }
      return next.promise;
    },
    async whileRunning(stop, work) {
      interrupt = stop;
      try {
        return await work();
      } finally {
        interrupt = undefined;
      }
    },
    close: () => reader.close(),
  };
}

/** Lines that are kept. */
const HISTORY_LINES = 1_000;

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
