import { readdir } from "node:fs/promises";
import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";

/** Placeholders of values that are paths on this machine. */
const PATH_NAME = /\b(?:FILE|DIR)\b/;

/** Directives to the shell, as the scripts of `@bomb.sh/tab` define them. */
const DIRECTIVE = { noSpace: 2, noFiles: 4 } as const;

/**
 * Adds `completion SHELL`, which prints a script for a shell, and the hidden command with which that script asks for
 * completions.
 */
export function addCompletion(program: Command): void {
  const completion = tab(program, { completionCommandName: "completion" });
  const commandNamed = (name: string) => program.commands.find((command) => command.name() === name);
  commandNamed("completion")?.description("print a completion script for a shell");
  const complete = commandNamed("complete");
  complete?.action(async (words: string[]) => {
    const word = words.at(-1) ?? "";
    if (!wantsPath(program, words)) completion.parse(words);
    else process.stdout.write(candidates(await pathsFrom(word)));
  });
}

/** Whether the last word is the value of an option, or an operand, that names a file. */
function wantsPath(program: Command, [name, ...words]: readonly string[]): boolean {
  const command = program.commands.find((each) => each.name() === name);
  const word = words.at(-1);
  if (command === undefined || word === undefined || word.startsWith("-")) return false;
  const before = words.slice(0, -1);
  const option = command.options.find(({ long }) => long === before.at(-1));
  if (option?.required) return PATH_NAME.test(option.flags);
  const { operands } = command.parseOptions(before);
  return PATH_NAME.test(command.registeredArguments[operands.length]?.name() ?? "");
}

/** Returns the paths that begin with a word; those of folders end with a slash. */
async function pathsFrom(word: string): Promise<readonly string[]> {
  const folder = word.slice(0, word.lastIndexOf("/") + 1);
  const entries = await readdir(folder || ".", { withFileTypes: true }).catch(() => []);
  const paths = entries.map((entry) => `${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`);
  return paths.filter((path) => path.startsWith(word));
}

function candidates(paths: readonly string[]): string {
  const goesOn = paths.length === 1 && paths[0]?.endsWith("/");
  const directive = DIRECTIVE.noFiles + (goesOn ? DIRECTIVE.noSpace : 0);
  return [...paths, `:${directive}`, ""].join("\n");
}
