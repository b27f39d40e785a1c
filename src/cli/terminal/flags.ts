import { type Command, Option } from "commander";
import type { Layer } from "../../config/layers.ts";
import { environmentName, type OptionSpec, type OptionTable } from "../../config/option-spec.ts";

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
