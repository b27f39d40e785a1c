import type { Layer } from "../../config/layers.ts";
import type { Environment } from "../../config/option-spec.ts";
import type { OptionGroup } from "../flags.ts";

/** What a command line says. */
export interface CommandLine {
  readonly operands: readonly string[];
  /** The sources of the command's options, the most important first. */
  readonly layers: readonly Layer[];
}

/** A command of `lance-gateway`. */
export interface CommandDefinition {
  /** Its operands as the help has them, for example `<TABLE> [FILE]`. Default: none. */
  readonly operands?: string;
  readonly groups: readonly OptionGroup[];
  /**
   * Runs it and returns the exit code.
   *
   * @throws UsageError for wrong use; Error with one clear line for what failed.
   */
  run(line: CommandLine, environment: Environment): Promise<number>;
}
