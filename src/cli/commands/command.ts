import { findGiven, type Layer } from "../../config/layers.ts";
import { type Environment, type OptionTable, UsageError } from "../../config/option-spec.ts";
import type { OptionGroup } from "../terminal/flags.ts";

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
