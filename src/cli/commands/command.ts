import type { Layer } from "../../config/layers.ts";
import type { Environment } from "../../config/option-spec.ts";
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
