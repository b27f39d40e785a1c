import { findGiven, type Layer } from "../../config/layers.ts";
import { type OptionTable, UsageError } from "../../config/option-spec.ts";

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
