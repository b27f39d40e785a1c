import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";

/** Placeholders of values that are paths on this machine. */
const PATH_NAME = /\b(?:FILE|DIR)\b/;

/** Asks the shell to complete file names, which it quotes in its own way. */
const FILE_NAMES = ":0\n";

/** The library registers its function in bash without file names to fall back to. */
const BASH_FILE_NAMES = "complete -o default -F __lance_gateway_complete lance-gateway\n";

const DESCRIPTION = "print a completion script for a shell";

/**
 * Adds `completion SHELL`, which prints a script for a shell, and the hidden command with which that script asks for
 * completions.
 */
export function addCompletion(program: Command): void {
  const completion = tab(program, { completionCommandName: "completion" });
  const commandNamed = (name: string) => program.commands.find((command) => command.name() === name);
  const offered = completion.commands.get("completion");
  if (offered !== undefined) offered.description = DESCRIPTION;
  commandNamed("completion")
    ?.description(DESCRIPTION)
    .hook("postAction", (_program, { args: [shell] }) => {
      if (shell === "bash") process.stdout.write(BASH_FILE_NAMES);
    });
  commandNamed("complete")?.action((words: string[]) => {
    if (wantsPath(program, words)) process.stdout.write(FILE_NAMES);
    else completion.parse(words);
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
