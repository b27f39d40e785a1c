import { Command, CommanderError } from "commander";
import { commandLine, environmentLayer, type Layer } from "../config/layers.ts";
import { type Environment, UsageError } from "../config/option-spec.ts";
import { refuseIdle } from "../config/serve-options.ts";
import { DOCUMENTATION, packageVersion } from "../runtime/package-files.ts";
import { addOptions, type CommandDefinition, type OptionGroup } from "./commands/command.ts";
import { COMMANDS, type CommandGroup, type Loadable } from "./commands/table.ts";
import { addCompletion } from "./completion.ts";
import { createHelpFormat } from "./terminal/help.ts";

const DESCRIPTION = "Serves Lance catalogs over REST, gRPC, Connect and gRPC-Web, and works on them.";

/**
 * Runs `lance-gateway` and returns its exit code. A gateway keeps serving after that, until a signal arrives.
 *
 * @throws UsageError for wrong usage; Error with a single line for a failure.
 */
export async function runProgram(args: readonly string[], environment: Environment): Promise<number> {
  let code = 0;
  const program = newProgram();
  const sources = new Map<Command, readonly Layer[]>();
  const groups = new Map<Command, readonly OptionGroup[]>();
  let isLong = false;
  const formatHelp = createHelpFormat(
    (command) => groups.get(command) ?? [],
    () => isLong,
  );
  program.configureHelp({ formatHelp });
  offerLongHelp(program);
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const command = program.command(name).helpGroup(`${entry.group}:`);
    await addEntry(command, entry);
  }
  addCompletion(program, environment, (command) => sources.get(command) ?? []);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    const flags = new Set([...sources.keys()].flatMap(({ options }) => options.map(({ long }) => long)));
    if (thrown.exitCode !== 0) throw new UsageError(messageOf(thrown, args, flags));
  }
  return code;

  async function addEntry(command: Command, entry: Loadable | CommandGroup): Promise<void> {
    command.description(entry.summary);
    offerLongHelp(command);
    // Only commands that the line names are loaded: to run them, to print their help or to complete them.
    if ("commands" in entry) {
      for (const [name, each] of Object.entries(entry.commands)) await addEntry(command.command(name), each);
    } else if (args.includes(command.name())) {
      const definition = await entry.load();
      const layers = describeCommand(command, definition, environment);
      sources.set(command, layers);
      groups.set(command, definition.groups);
      command.action(async () => {
        // The reader of the options of serve, which files have too, checks these.
        for (const { environment: isOfServer, options } of definition.groups)
          if (!isOfServer) refuseIdle(options, commandLine(layers), layers);
        code = await definition.run({ operands: command.args, layers }, environment);
      });
    }
  }

  function offerLongHelp(command: Command): void {
    command.option("--help-all", "print help with everything").on("option:help-all", () => {
      isLong = true;
      command.help();
    });
  }
}

function newProgram(): Command {
  return (
    new Command("lance-gateway")
      .description(DESCRIPTION)
      .version(packageVersion(), "-v, --version", "print the version")
      .helpOption("-h, --help", "print help")
      .addHelpText("after", `\nDocumentation: ${DOCUMENTATION}`)
      .commandsGroup("Shell:")
      .helpCommand("help [command]", "print help for a command")
      // Options after the name of a command are the command's: count has a --version of its own.
      .enablePositionalOptions()
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
  );
}

function describeCommand(
  command: Command,
  { operands, groups }: CommandDefinition,
  environment: Environment,
): readonly Layer[] {
  if (operands !== undefined) command.arguments(operands);
  for (const argument of command.registeredArguments) {
    // The command checks its words itself.
    if (argument.name().includes("|")) argument.argChoices = argument.name().split("|");
  }
  const flags = addOptions(command, groups);
  const variables = environmentLayer(environment);
  const fromEnvironment = new Set(
    groups.flatMap((group) => (group.environment ? Object.values(group.options) : [])),
  );
  return [flags, (spec) => (fromEnvironment.has(spec) ? variables(spec) : undefined)];
}

/**
 * Returns a single line; the value of an unknown option may be a secret.
 *
 * @param flags options of the command, of which the library does not know those that it calls unknown for their value.
 */
function messageOf(
  { code, message }: CommanderError,
  args: readonly string[],
  flags: ReadonlySet<string | undefined>,
): string {
  const [name = "", next = "-"] = args;
  const entry = COMMANDS[name];
  if (entry !== undefined && "commands" in entry && next.startsWith("-"))
    return `${name} needs one of ${Object.keys(entry.commands).join(", ")}`;
  if (code === "commander.help") {
    const what = args.length === 0 ? "a command is missing" : `unknown command '${args.at(-1)}'`;
    return `${what}; see lance-gateway --help`;
  }
  const [, flag] = /^error: unknown option '([^'=]+)=/.exec(message) ?? [];
  if (flags.has(flag ?? "")) return `option '${flag}' takes no value`;
  return message
    .replace(/^error: /, "")
    .replace(/^(unknown option '[^'=]+)=.*?'(?=\n\(Did|$)/s, "$1'")
    .replaceAll(/\s*\n\s*/g, " ");
}
