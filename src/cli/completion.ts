import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import type { Layer } from "../config/layers.ts";
import type { Environment } from "../config/option-spec.ts";

/** Placeholders of values that are paths on this machine. */
const PATH_NAME = /\b(?:FILE|DIR)\b/;

/** Asks the shell to complete file names, which it quotes in its own way. */
const FILE_NAMES = ":0\n";
/** Ends offers beside which the shell offers no file names. */
const NO_FILES = ":4\n";
/** Ends an offer that the user goes on to write, so that no space follows it, either. */
const NO_SPACE = ":6\n";

/** The library registers its function in bash without file names to fall back to. */
const BASH_FILE_NAMES = "complete -o default -F __lance_gateway_complete lance-gateway\n";

const DESCRIPTION = "print a completion script for a shell";

/** Returns the sources of the options of a command. */
type LayersOf = (command: Command) => readonly Layer[];

/**
 * Adds `completion SHELL`, which prints a script for a shell, and the hidden command with which that script asks for
 * completions.
 */
export function addCompletion(program: Command, environment: Environment, layersOf: LayersOf): void {
  const completion = tab(program, { completionCommandName: "completion" });
  const commandNamed = (name: string) => program.commands.find((command) => command.name() === name);
  const offered = completion.commands.get("completion");
  if (offered !== undefined) offered.description = DESCRIPTION;
  commandNamed("completion")
    ?.description(DESCRIPTION)
    .hook("postAction", (_program, { args: [shell] }) => {
      if (shell === "bash") process.stdout.write(BASH_FILE_NAMES);
    });
  commandNamed("complete")?.action(async (words: string[]) => {
    const value = valueIn(program, words);
    if (value !== undefined && PATH_NAME.test(value.name)) {
      process.stdout.write(FILE_NAMES);
      return;
    }
    const { offersOf } = await import("./completion-values.ts");
    const offers = value && (await offersOf(value.name, value.word, layersOf(value.command), environment));
    if (offers === undefined) completion.parse(words);
    else {
      const [only, another] = offers;
      const end = another === undefined && only?.endsWith("/") ? NO_SPACE : NO_FILES;
      process.stdout.write(offers.map((offer) => `${offer}\t\n`).join("") + end);
    }
  });
}

/** The value that is being completed. */
interface CompletedValue {
  /** Placeholder of the option or the operand, such as `FILE`. */
  readonly name: string;
  /** Beginning of the value. */
  readonly word: string;
  /** The command with the options that precede the value. */
  readonly command: Command;
}

/** Returns which value the last word begins: that of an option, or an operand. */
function valueIn(program: Command, words: readonly string[]): CompletedValue | undefined {
  let command = program;
  let rest = words;
  for (let found: Command | undefined; ; [command, rest] = [found, rest.slice(1)]) {
    found = rest.length < 2 ? undefined : command.commands.find((each) => each.name() === rest[0]);
    if (found === undefined) break;
  }
  const word = rest.at(-1);
  if (command === program || word === undefined || word.startsWith("-")) return undefined;
  const before = rest.slice(0, -1);
  const option = command.options.find(({ long }) => long === before.at(-1));
  if (option?.required) {
    command.parseOptions(before.slice(0, -1));
    return { name: option.flags.replace(/^.*<|>$/g, ""), word, command };
  }
  const { operands } = command.parseOptions(before);
  const { registeredArguments } = command;
  const argument =
    registeredArguments[operands.length] ?? registeredArguments.findLast((each) => each.variadic);
  return argument && { name: argument.name(), word, command };
}
