import { Command } from "commander";
import { addOptions, type OptionGroup } from "../../src/cli/commands/command.ts";
import { environmentLayer, type Layer } from "../../src/config/layers.ts";
import type { Environment } from "../../src/config/option-spec.ts";
import { SERVE_OPTIONS } from "../../src/config/options/groups.ts";

const SERVE: readonly OptionGroup[] = [{ heading: "Options", options: SERVE_OPTIONS, environment: true }];

/** Returns the configuration sources of `lance-gateway serve` for a command line and an environment. */
export function sourcesOf(args: readonly string[], environment: Environment = {}): readonly Layer[] {
  const command = new Command("serve").exitOverride().configureOutput({ writeErr: () => {} });
  const flags = addOptions(command, SERVE);
  command.parse(args, { from: "user" });
  return [flags, environmentLayer(environment)];
}
