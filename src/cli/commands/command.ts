import type { OptionSpec } from "../../config/option-spec.ts";
import {
  type Environment,
  environmentLayer,
  flagLayer,
  type Layer,
  type OptionValues,
  settleTable,
} from "../../config/parse-options.ts";

/** A command of `lance-gateway`, beside `serve`. */
export interface Command {
  /** What it does, in one line of the help. */
  readonly summary: string;
  /** Its operands as the help has them, for example `TABLE [FILE]`. Default: none. */
  readonly usage?: string;
  /** Its options, as the help lists them. */
  readonly options: Readonly<Record<string, OptionSpec>>;
  /**
   * Runs it and returns the exit code.
   *
   * @throws UsageError for wrong use; Error with one clear line for what failed.
   */
  run(args: readonly string[], environment: Environment): Promise<number>;
}

/**
 * Reads the options of a command: flags, then the environment, then defaults.
 *
 * @param shared the flags that `serve` has too; only they can be set by the environment
 */
export function readOptions<T extends Readonly<Record<string, OptionSpec>>>(
  specs: T,
  shared: readonly string[],
  args: readonly string[],
  environment: Environment,
): OptionValues<T> {
  const variables = environmentLayer(environment);
  const layers: readonly Layer[] = [
    flagLayer(args, specs),
    (spec) => (shared.includes(spec.flag) ? variables(spec) : undefined),
  ];
  return settleTable(specs, layers);
}
