import { environmentName, flagUsage, type OptionSpec } from "../config/option-spec.ts";
import { SERVE_OPTIONS } from "../config/options.ts";
import type { Command } from "./commands/command.ts";
import { COMMANDS } from "./commands/table.ts";

/** The text of `lance-gateway --help`. */
export async function helpText(): Promise<string> {
  const options = Object.values<OptionSpec>(SERVE_OPTIONS).map(
    (spec) => `${optionHelp(spec)}\n      Environment: ${environmentName(spec.flag)}`,
  );
  const commands = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]) =>
      usageLine(`${name} [options]`, (await load()).summary),
    ),
  );
  return [
    "Lance Gateway serves the Lance Namespace API over REST, gRPC, Connect and gRPC-Web on one port.",
    "",
    "Usage:",
    usageLine("serve [options]", "serve a directory of Lance tables, or an upstream catalog"),
    ...commands,
    usageLine("--help", "print this text; after a command, its options"),
    usageLine("--version", "print the version"),
    "",
    "Options of serve:",
    ...options,
    "",
  ].join("\n");
}

/** The text of `lance-gateway NAME --help`. */
export function commandHelp(name: string, { summary, usage, options }: Command): string {
  return [
    `lance-gateway ${name} ${usage === undefined ? "" : `${usage} `}[options]: ${summary}`,
    "",
    ...Object.values(options).map(optionHelp),
    "",
  ].join("\n");
}

function usageLine(usage: string, summary: string): string {
  return `  lance-gateway ${usage.padEnd(17)} ${summary}`;
}

function optionHelp(spec: OptionSpec): string {
  const isSwitchedOff = spec.value === undefined && spec.fallback === "false";
  const fallback = spec.fallback === undefined || isSwitchedOff ? "" : ` (default ${spec.fallback})`;
  return `  ${flagUsage(spec)}\n      ${spec.help}${fallback}`;
}
