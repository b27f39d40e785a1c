import {
  environmentName,
  flagUsage,
  type OptionSpec,
  type OptionTable,
} from "../../src/config/option-spec.ts";
import { OPTION_GROUPS } from "../../src/config/options/groups.ts";
import { markdownTable } from "./markdown.ts";

/** The options of `lance-gateway serve`, a table for each group. */
export function configurationTable(): string {
  const groups = Object.entries(OPTION_GROUPS).map(
    ([heading, options]) => `### ${heading}\n\n${tableOf(options)}`,
  );
  return groups.join("\n\n");
}

function tableOf(options: OptionTable): string {
  const rows = Object.values(options).map((spec) => [
    `\`${flagUsage(spec)}\``,
    `\`${environmentName(spec.flag)}\``,
    spec.fallback === undefined ? "" : `\`${spec.fallback}\``,
    spec.backends?.join(", ") ?? "",
    meaningOf(spec),
  ]);
  return markdownTable(["Flag", "Environment", "Default", "Database", "Meaning"], rows);
}

function meaningOf({ help, parse: { choices } }: OptionSpec): string {
  return choices === undefined ? help : `${help} Choices: ${choices.join(", ")}.`;
}
