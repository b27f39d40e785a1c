import { createInterface } from "node:readline/promises";
import type { OptionSpec } from "../../config/option-spec.ts";
import { parseSwitch } from "../../config/parsers.ts";
import { forTerminal } from "./terminal-text.ts";

/** Option of commands that remove something. */
export const YES_OPTION = {
  flag: "yes",
  help: "Do it without asking. Only a terminal is asked; scripts are not.",
  fallback: "false",
  parse: parseSwitch,
} as const satisfies OptionSpec;

/** The streams of a question. */
export interface Console {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Asks before something is lost, on a terminal alone: a script has nobody to ask, and its command line is its decision.
 *
 * @param question what will be done, without a question mark
 * @param signal ends the wait for an answer.
 * @throws Error with a single line, if the answer is not yes
 */
export async function confirm(
  question: string,
  signal?: AbortSignal,
  { input, output }: Console = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (!input.isTTY || !output.isTTY) return;
  const asking = createInterface({ input, output });
  const stopped = new AbortController();
  // The terminal is in raw mode, so that Ctrl-C arrives as a key; Ctrl-D ends the input.
  asking.once("SIGINT", () => stopped.abort()).once("close", () => stopped.abort());
  const signals = [stopped.signal, ...(signal === undefined ? [] : [signal])];
  try {
    const answer = await asking.question(`${forTerminal(question)}? [y/N] `, {
      signal: AbortSignal.any(signals),
    });
    if (isYes(answer)) return;
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    output.write("\n");
  } finally {
    asking.close();
  }
  throw new Error("nothing was done; --yes does it without asking");
}

/** Whether an answer to a question is yes. */
export function isYes(answer: string): boolean {
  return /^y(es)?$/i.test(answer.trim());
}
