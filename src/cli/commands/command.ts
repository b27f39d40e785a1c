import { type Command, Option } from "commander";
import { findGiven, type Layer } from "../../config/layers.ts";
import {
  type Environment,
  environmentName,
  type OptionSpec,
  type OptionTable,
  UsageError,
} from "../../config/option-spec.ts";

/** Parsed command line. */
export interface CommandLine {
  readonly operands: readonly string[];
  /** Sources of the command's options, the most important first. */
  readonly layers: readonly Layer[];
}

/** A command of `lance-gateway`. */
export interface CommandDefinition {
  /** Operands as the help shows them, for example `<TABLE> [FILE]`. Default: none. */
  readonly operands?: string;
  readonly groups: readonly OptionGroup[];
  /**
   * Runs the command and returns its exit code.
   *
   * @throws UsageError for wrong usage; Error with a single line for a failure.
   */
  run(line: CommandLine, environment: Environment): Promise<number>;
}

/**
 * Refuses options of a command that the chosen action of it does not use: they would do nothing, and a caller would believe otherwise.
 *
 * @param action name of the action in the message
 * @param used keys of the options that it uses
 * @throws UsageError
 */
export function refuseUnused(
  action: string,
  options: OptionTable,
  used: readonly string[],
  [flags]: readonly Layer[],
): void {
  for (const [key, spec] of Object.entries(options)) {
    if (flags === undefined || used.includes(key) || findGiven(spec, [flags]) === undefined) continue;
    throw new UsageError(`${action} takes no --${spec.flag}`);
  }
}

/** Options of a command that its help lists together. */
export interface OptionGroup {
  /** Heading in the help. */
  readonly heading: string;
  readonly options: OptionTable;
  /** Whether environment variables set the options, too. */
  readonly environment: boolean;
}

/**
 * Adds groups of options to a command.
 *
 * @returns the source of the options on its command line, available after parsing.
 */
export function addOptions(command: Command, groups: readonly OptionGroup[]): Layer {
  const added = new Map<OptionSpec, Option>();
  for (const { heading, options, environment } of groups) {
    for (const spec of Object.values(options)) {
      const option = optionOf(spec).helpGroup(`${heading}:`);
      if (environment) option.env(environmentName(spec.flag));
      command.addOption(option);
      if (spec.value === undefined) command.addOption(oppositeOf(spec));
      added.set(spec, option);
    }
  }
  return (spec) => {
    const option = added.get(spec);
    // Commander also reads variables and defaults, which have sources of their own here.
    if (option === undefined || command.getOptionValueSource(option.attributeName()) !== "cli") return;
    const value: unknown = command.getOptionValue(option.attributeName());
    const texts = [value].flat().map((each) => String(option.negate ? !each : each));
    return { source: `--${spec.flag}`, texts };
  };
}

function optionOf({ flag, value, help, fallback, parse, repeatable }: OptionSpec): Option {
  if (value === undefined) return new Option(`--${flag}`, help);
  const option = new Option(`--${flag} <${value}>`, repeatable ? `${help} Repeatable.` : help);
  if (fallback !== undefined) option.default(fallback, fallback);
  // The parser of the option checks its values, whatever their source.
  if (parse.choices !== undefined) option.argChoices = [...parse.choices];
  return repeatable ? option.argParser(append) : option;
}

function append(text: string, texts: readonly string[] = []): readonly string[] {
  return [...texts, text];
}

/** Returns the option that reverses a switch of another source: `--no-x` for `--x`, and the other way round. */
function oppositeOf({ flag }: OptionSpec): Option {
  return new Option(flag.startsWith("no-") ? `--${flag.slice(3)}` : `--no-${flag}`).hideHelp();
}
