import { COMMANDS, type CommandGroup, type Loadable } from "../../src/cli/commands/table.ts";
import { flagUsage, type OptionSpec } from "../../src/config/option-spec.ts";
import { markdownTable } from "./markdown.ts";

/** The commands of `lance-gateway` under the headings of its help, with their own options. */
export async function commandReference(): Promise<string> {
  const parts: string[] = [];
  const groups = Map.groupBy(Object.entries(COMMANDS), ([, { group }]) => group);
  for (const [heading, commands] of groups) {
    parts.push(`### ${heading}`);
    for (const [name, entry] of commands) parts.push(...(await partsOf(name, entry)));
  }
  return parts.join("\n\n");
}

async function partsOf(name: string, entry: Loadable | CommandGroup): Promise<string[]> {
  if ("commands" in entry) {
    const inner = Object.entries(entry.commands).map(([each, loadable]) =>
      partsOf(`${name} ${each}`, loadable),
    );
    return (await Promise.all(inner)).flat();
  }
  const { operands = "", groups } = await entry.load();
  const options = groups
    .flatMap((group) => (group.environment ? [] : Object.values(group.options)))
    .filter(({ flag }) => flag !== "json");
  const usage = `lance-gateway ${name} ${operands}`.trim();
  const summary = `${entry.summary.charAt(0).toUpperCase()}${entry.summary.slice(1)}.`;
  return [`**\`${usage}\`**`, summary, ...(options.length === 0 ? [] : [tableOf(options)])];
}

function tableOf(options: readonly OptionSpec[]): string {
  const rows = options.map((spec) => [
    `\`${flagUsage(spec)}\``,
    spec.fallback === undefined || spec.value === undefined ? "" : `\`${spec.fallback}\``,
    meaningOf(spec),
  ]);
  return markdownTable(["Option", "Default", "Meaning"], rows);
}

function meaningOf({ help, parse: { choices } }: OptionSpec): string {
  return choices === undefined || help.includes(choices[1] ?? "")
    ? help
    : `${help} Choices: ${choices.join(", ")}.`;
}
